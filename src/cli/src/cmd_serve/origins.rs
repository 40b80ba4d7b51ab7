//! Shows every setting of `fairlead serve` with its origin.

use serde_json::{Map, Value, json};

use crate::{
    context::Context,
    exit,
    table::{Grid, or_dash},
};

pub(super) fn show(context: &Context) -> anyhow::Result<u8> {
    let settings = &context.serving;
    let all: Map<String, Value> = settings
        .iter()
        .map(|found| {
            let value = json!({"value": found.value, "from": found.from});
            (found.name.clone(), value)
        })
        .collect();
    context.print(&all, |_| {
        let mut grid = Grid::new(&["setting", "value", "from"]);
        for found in settings {
            grid.row([
                found.name.clone(),
                or_dash(&found.value),
                found.from.clone(),
            ]);
        }
        grid.render(context.output.paper())
    })?;
    Ok(exit::OK)
}
