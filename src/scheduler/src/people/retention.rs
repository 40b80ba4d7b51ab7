//! How long jobs are kept: admins set it for the lab, else each replica has its own `--keep-months`.

use fairlead_api::{RetentionChange, RetentionView};
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use crate::people::PeopleFlow;
use fairlead_base::{
    errors::{PeopleError, Refusal},
    storage::small_doc::{DocError, SmallDoc},
};

/// The id of the one document.
const RETENTION_DOC: &str = "retention";
/// Most months, as of `--keep-months`.
const KEEP_MONTHS_MAX: u32 = 1_000;

/// What an admin set: its document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Retention {
    /// 0: for ever; none: nobody says so.
    keep_months: Option<u32>,
}

impl SmallDoc for Retention {
    const KIND: DocKind = DocKind::Setting;
}

impl PeopleFlow {
    /// Whole months for which jobs are kept now, read in real time; 0: for ever.
    pub(crate) async fn keep_months(&self) -> Result<u32, DocError> {
        let read = self.ctx.docs.read::<Retention>(RETENTION_DOC).await?;
        let set = read.and_then(|read| read.doc.keep_months);
        Ok(set.unwrap_or(self.ctx.config.keep_months))
    }

    /// What an admin set, and what acts here.
    pub(crate) async fn retention(&self) -> Result<RetentionView, Refusal> {
        let read = self.ctx.docs.read::<Retention>(RETENTION_DOC).await?;
        Ok(self.retention_view(&read.map(|read| read.doc).unwrap_or_default()))
    }

    /// Sets it for all replicas. Each looks for old months once an hour.
    pub(crate) async fn set_retention(
        &self,
        change: &RetentionChange,
    ) -> Result<RetentionView, Refusal> {
        if let Some(given) = change
            .keep_months
            .filter(|months| *months > KEEP_MONTHS_MAX)
        {
            let max = KEEP_MONTHS_MAX;
            return Err(PeopleError::TooManyMonths { given, max }.into());
        }
        if change.keep_months.is_some_and(|months| months > 0)
            && let Some(lacks) = self.ctx.store.lacks_to_drop().await?
        {
            return Err(PeopleError::MayNotDrop(lacks).into());
        }
        let doc = Retention {
            keep_months: change.keep_months,
        };
        let next = async |_| -> Result<Retention, Refusal> { Ok(doc.clone()) };
        let stored = self.ctx.docs.change(RETENTION_DOC, next).await?;
        self.may_drop(None);
        Ok(self.retention_view(&stored.doc))
    }

    /// Notes what the store's user lacks to delete old jobs; `None`: nothing.
    pub(crate) fn may_drop(&self, lacks: Option<String>) {
        *self.undeletable.lock() = lacks;
    }

    fn retention_view(&self, set: &Retention) -> RetentionView {
        RetentionView {
            keep_months: set.keep_months,
            in_force: set.keep_months.unwrap_or(self.ctx.config.keep_months),
        }
    }
}
