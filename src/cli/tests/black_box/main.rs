//! Black-box tests of the built `fairlead`, in one test program to link once.

mod crashes;
mod lab;
mod local_run;
mod offline;
mod online;
mod scheduler;
mod truths;
