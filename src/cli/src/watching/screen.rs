//! The terminal of a live table: keys without Enter, a page of its own. It is given back when the table ends, whatever
//! ends it: a key, a signal, a stop, a panic. Knows nothing of jobs.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic,
    sync::Once,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    process::{Signal, getpgrp, getpid, kill_process},
    termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
        tcsetattr,
    },
};

use crate::clock;

/// Interval between reads of keys. It is short for a person and long for a machine.
const KEYS_EVERY: Duration = Duration::from_millis(50);
/// Sequence that opens the alternate screen, hides the cursor, and turns line wrap off.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Sequence that restores the main screen.
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Default number of columns and rows, if the terminal does not know its size.
const SIZE: (usize, usize) = (80, 24);

/// State of the terminal before it was taken, while it is taken.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
/// Guard that sets the panic hook once.
static HOOKED: Once = Once::new();

struct Before {
    modes: Termios,
    input: OwnedFd,
    output: OwnedFd,
}

/// Terminal of a live table.
pub(crate) struct Screen {
    input: OwnedFd,
    output: OwnedFd,
}

impl Screen {
    /// Returns the terminal at these ends. Only [`Screen::enter`] takes it.
    pub(crate) fn new(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        HOOKED.call_once(|| {
            let hook = panic::take_hook();
            // Otherwise the message would disappear with the page.
            panic::set_hook(Box::new(move |info| {
                give_back();
                hook(info);
            }));
        });
        Ok(Self {
            input: input.try_clone_to_owned()?,
            output: output.try_clone_to_owned()?,
        })
    }

    /// Takes the terminal. Returns false if it belongs to another command now, as after `bg`.
    pub(crate) fn enter(&self) -> io::Result<bool> {
        let input = &self.input;
        // A terminal that controls no session belongs to no other command.
        if tcgetpgrp(input).is_ok_and(|owner| owner != getpgrp()) {
            return Ok(false);
        }
        let mut before = BEFORE.lock();
        if before.is_some() {
            return Ok(true);
        }
        let modes = tcgetattr(input)?;
        let mut ours = modes.clone();
        // Ctrl-C and Ctrl-Z stay signals.
        ours.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // A read takes the available bytes, and never waits.
        ours.special_codes[SpecialCodeIndex::VMIN] = 0;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        *before = Some(Before {
            modes,
            input: input.try_clone()?,
            output: self.output.try_clone()?,
        });
        drop(before);
        tcsetattr(input, OptionalActions::Now, &ours)?;
        write_all(&self.output, ENTER);
        Ok(true)
    }

    /// Returns true if the terminal is taken.
    pub(crate) fn is_taken() -> bool {
        BEFORE.lock().is_some()
    }

    /// Returns the terminal and stops this process, as Ctrl-Z does. Returns when the process goes on.
    pub(crate) fn stop() {
        give_back();
        // If the process cannot be stopped, it goes on.
        let _ = kill_process(getpid(), Signal::STOP);
    }

    /// Returns the next key, while the terminal is taken. The future may be dropped and called again.
    pub(crate) async fn key(&self) -> io::Result<u8> {
        loop {
            let mut key = [0_u8; 1];
            // Keys of a terminal that is not taken belong to another command.
            let is_ours = Self::is_taken();
            match is_ours.then(|| rustix::io::read(&self.input, &mut key)) {
                Some(Ok(1..)) => return Ok(key[0]),
                None | Some(Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)) => {
                    clock::pause(KEYS_EVERY).await;
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Returns its columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        let known = |number: u16, default| match number {
            0 => default,
            number => usize::from(number),
        };
        tcgetwinsize(&self.output).map_or(SIZE, |size| {
            (known(size.ws_col, SIZE.0), known(size.ws_row, SIZE.1))
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the earlier state of the terminal. It does nothing if the terminal is not taken.
fn give_back() {
    let Some(before) = BEFORE.lock().take() else {
        return;
    };
    write_all(&before.output, LEAVE);
    // A closed terminal needs no restore.
    let _ = tcsetattr(&before.input, OptionalActions::Now, &before.modes);
}

fn write_all(output: impl AsFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(output.as_fd(), bytes) {
            Ok(written @ 1..) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    fn terminal() -> (OwnedFd, OwnedFd) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = name.to_string_lossy().into_owned();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        (master, slave.into())
    }

    fn modes(terminal: &OwnedFd) -> (LocalModes, u8) {
        let modes = tcgetattr(terminal).unwrap();
        let least = modes.special_codes[SpecialCodeIndex::VMIN];
        (modes.local_modes, least)
    }

    #[test]
    fn a_panic_gives_the_terminal_back() {
        let (_master, slave) = terminal();
        let before = modes(&slave);
        let screen = Screen::new(slave.as_fd(), slave.as_fd()).unwrap();
        assert!(screen.enter().unwrap() && Screen::is_taken());
        let ours = modes(&slave);
        assert!(!ours.0.intersects(LocalModes::ICANON | LocalModes::ECHO));
        assert!(ours.0.contains(LocalModes::ISIG));
        let ended = panic::catch_unwind(|| panic!("as a mistake in a page would"));
        assert!(ended.is_err() && !Screen::is_taken());
        assert_eq!(modes(&slave), before);
        // The terminal can be taken again, and a drop restores it, too.
        assert!(screen.enter().unwrap());
        assert_eq!(modes(&slave), ours);
        drop(screen);
        assert_eq!(modes(&slave), before);
    }
}
