//! The program `fairlead-measure`; the library beside it has all of it.

fn main() {
    fairlead_measure::run();
}
