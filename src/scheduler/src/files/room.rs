//! Watches the room of the data folder, and notes files that it did not take.

use std::{io, path::Path, sync::Arc, time::Duration};

use serde_json::json;

use crate::files::{FileFlow, read::blocking};
use fairlead_base::errors::{ContentFault, FileError, Refusal};
use fairlead_known::data_room::Room;

/// The file system is asked this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl FileFlow {
    /// Asks the file system how much room there is, until the replica stops.
    pub(crate) async fn watch_room(self: Arc<Self>) {
        loop {
            let data = self.ctx.config.data_dir.clone();
            // A file system on the network may hang: nothing else waits for it.
            match blocking(move || room_of(&data)).await {
                Ok(room) => self.room.measured(room),
                Err(error) => tracing::warn!(%error, "the room of the data folder is not known"),
            }
            let pause = self
                .ctx
                .tasks
                .until_draining(self.ctx.clock.sleep(LOOK_EVERY));
            if pause.await.is_none() {
                return;
            }
        }
    }

    /// Notes a refusal, if it says that the data folder does not take files.
    pub(crate) fn note_refused_file(&self, refusal: &Refusal) {
        let problem = match refusal {
            Refusal::File(FileError::DiskFull) | Refusal::Content(ContentFault::Full) => {
                "it is full: files of jobs were refused"
            }
            Refusal::File(FileError::Unusable) => {
                "files could not be read or written; the log has the reason"
            }
            _ => return,
        };
        if self.room.refused(problem, self.ctx.clock.now()) {
            let room = self.room.room().unwrap_or_default();
            let detail = json!({
                "problem": problem, "free_bytes": room.free_bytes, "free_inodes": room.free_inodes,
            });
            self.ctx.audit(
                &self.ctx.config.replica,
                "data.refused",
                "data folder",
                detail,
            );
        }
    }
}

/// Blocks.
fn room_of(data: &Path) -> io::Result<Room> {
    let said = rustix::fs::statvfs(data)?;
    Ok(Room {
        free_bytes: said.f_bavail.saturating_mul(said.f_frsize),
        bytes: said.f_blocks.saturating_mul(said.f_frsize),
        free_inodes: said.f_favail,
        inodes: said.f_files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        flows::Flows,
        testing::{flows, noted},
    };

    #[tokio::test]
    async fn a_refused_file_is_an_incident_once() {
        let (data, flows) = flows().await;
        flows.files.room.measured(room_of(data.path()).unwrap());
        flows.files.note_refused_file(&FileError::Missing.into());
        let view = |flows: &Flows| flows.files.room.view(flows.ctx.clock.now()).unwrap();
        assert!(view(&flows).bytes > 0);
        for _ in 0..2 {
            flows.files.note_refused_file(&FileError::DiskFull.into());
        }
        assert!(view(&flows).problem.unwrap().problem.contains("full"));
        let events = noted(&flows, 1).await;
        assert_eq!(events[0].what, "data.refused");
    }
}
