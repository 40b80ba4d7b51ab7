//! Errors of files: results, logs and kernels.

use fairlead_job::{DataReadiness, JobId};

refusals! {
    /// An error of a file.
    pub enum FileError {
        #[error("path '{shown}': {problem}")]
        BadPath { shown: String, problem: PathProblem } => BadName,
            "a relative path below the job's result_root";
        #[error("the path is outside {0}")]
        Outside(String) => Forbidden, "upload below the result_root of the grant";
        #[error("no such file")]
        Missing => NotFound, "list the folder above it";
        #[error("the file exists")]
        Exists => Conflict, "a result file is written once";
        #[error("a folder is where a file should be, or the other way round")]
        WrongKind => BadName, "choose another name";
        #[error("the name is too long, or has characters that the replica's disk does not take")]
        BadName => BadName, "choose another name";
        #[error("the data folder of the scheduler is full")]
        DiskFull => DataFull,
            "an operator makes room; a testbox soon ends its job without this file";
        #[error("the replica cannot read or write that file")]
        Unusable => Internal, "the replica's log has the reason";
        #[error("the content store cannot be reached, or says no")]
        Unreachable => Unavailable, "try again in a few seconds";
        #[error("the stored file is damaged")]
        Damaged => Internal, "an admin can find what is damaged: fairlead content check";
        #[error("the file has more than {0} bytes")]
        TooLarge(u64) => TooLarge, "split or compress it";
        #[error("the job has uploaded {0} files")]
        TooManyFiles(u64) => Quota, "put many small files into an archive";
        #[error("the files of the job would have more than {0} bytes")]
        TooManyBytes(u64) => Quota, "leave less in RESULT_ROOT; smaller files may still fit";
        #[error("account '{0}' has {1} MB of results; its limit is {2} MB")]
        OverQuota(String, u64, u64) => Quota,
            "an admin sets it: fairlead account add NAME --results-mb N";
        #[error("offset {offset} leaves a gap: the log has {size} bytes")]
        Gap { offset: u64, size: u64 } => Conflict, "append at its size";
        #[error("the log would have {size} bytes; the limit is {max}")]
        LogTooLarge { size: u64, max: u64 } => TooLarge, "write large output into a result file";
        /// The job has ended, and its results are complete or will not come any more.
        #[error("the results of job {id} are sealed: it has ended, and they are {readiness}")]
        Sealed { id: JobId, readiness: DataReadiness } => Closed, "nothing more is taken";
    }
}

/// Reason why a path is invalid for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("longer than 1024 bytes")]
    TooLong,
    #[error("it holds a NUL or a backslash")]
    OddByte,
    #[error("a name in it is longer than 255 bytes")]
    NameTooLong,
    #[error("it leaves the folder or is empty")]
    Leaves,
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::NotADirectory | ErrorKind::IsADirectory => Self::WrongKind,
            ErrorKind::InvalidFilename => Self::BadName,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                tracing::error!(%error, "the disk of the data folder is full");
                Self::DiskFull
            }
            _ => {
                tracing::error!(%error, "a result file could not be read or written");
                Self::Unusable
            }
        }
    }
}
