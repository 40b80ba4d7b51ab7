"""Reads docs/openapi.json from stdin, and writes the part of it that users of a lab call.

It leaves out:

- the routes of testboxes, of machines that boot and of replicas, the old names of routes, and the schemas of those;
- the token as a query parameter, because the client sends the header;
- YAML bodies, for which the generator makes code that fails.

A list in a query becomes a text, because the generator does not put commas between the values of a list.
"""

import json
import re
import sys

TAGS = {"boot", "machines", "peers", "service", "testboxes"}
OPERATIONS = {
    "append_log",
    "dispatch",
    "register_host",
    "update",
    "upload",
    "upload_by_put",
    "wait_peer",
}

document = json.load(sys.stdin)
for path, operations in list(document["paths"].items()):
    for method, operation in list(operations.items()):
        if TAGS & set(operation["tags"]) or operation["operationId"] in OPERATIONS:
            del operations[method]
            continue
        operation.get("requestBody", {}).get("content", {}).pop("application/yaml", None)
        parameters = [
            one for one in operation["parameters"] if (one["in"], one["name"]) != ("query", "token")
        ]
        for one in parameters:
            if one.get("explode") is False:
                one["schema"] = {"type": "string"}
        operation["parameters"] = parameters
    if not operations:
        del document["paths"][path]

schemas = document["components"]["schemas"]
used: set[str] = set()
part = json.dumps(document["paths"])
while names := set(re.findall(r'"#/components/schemas/(\w+)"', part)) - used:
    used |= names
    part = json.dumps([schemas[name] for name in sorted(names)])
document["components"]["schemas"] = {
    name: schema for name, schema in schemas.items() if name in used
}
json.dump(document, sys.stdout)
