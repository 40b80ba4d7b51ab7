//! Black-box tests of the built `fairlead`: one program, so that it is linked once.

mod lab;
mod local_run;
mod offline;
mod online;
mod scheduler;
mod truths;
