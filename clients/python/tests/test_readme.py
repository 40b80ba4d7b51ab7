"""The example of the README."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_first_example_runs(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1].replace("http://127.0.0.1:3000", server), names)
    names["lab"].close()
    greetings = {file.read_text() for file in tmp_path.glob("greeting-*")}
    assert greetings == {"greeted world\n", "greeted lab\n"}
    printed = capsys.readouterr().out
    assert "greet=world success hello world\n" in printed
