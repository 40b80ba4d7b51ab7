//! The lab's settings of reuse: admins set them, one small document stores them, and every submit meets them.

use fairlead_api::ReuseSettings;

use crate::reuse::ReuseFlow;
use fairlead_base::errors::{PeopleError, Refusal};
use fairlead_known::reuse_settings::{REUSE_DOC, ReuseDoc, checked};

impl ReuseFlow {
    /// The settings as they are stored now.
    pub(crate) async fn reuse_settings(&self) -> Result<ReuseSettings, Refusal> {
        let read = self.ctx.docs.read::<ReuseDoc>(REUSE_DOC).await?;
        Ok(read.map(|read| read.doc.into()).unwrap_or_default())
    }

    /// Replaces all of them. They act at once here, and on other replicas within two seconds.
    pub(crate) async fn set_reuse_settings(
        &self,
        settings: ReuseSettings,
    ) -> Result<ReuseSettings, Refusal> {
        let doc = ReuseDoc::from(settings);
        checked(&doc).map_err(PeopleError::BadReuse)?;
        let next = async |_| -> Result<ReuseDoc, Refusal> { Ok(doc.clone()) };
        let stored = self.ctx.docs.change(REUSE_DOC, next).await?;
        self.rules.are(stored.version, &stored.doc);
        Ok(stored.doc.into())
    }
}
