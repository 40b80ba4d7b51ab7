//! The parts of `fairlead watch`: looks at the jobs of a lab, pages of text, and a terminal that is always given back.

mod lines;
mod look;
mod page;
mod screen;

pub(crate) use lines::{Lines, said};
pub(crate) use look::{Look, Watched};
pub(crate) use page::Page;
pub(crate) use screen::Screen;
