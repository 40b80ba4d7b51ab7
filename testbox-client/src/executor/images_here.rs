//! Which images this host has now: each job tells the one that it runs in, and the host tells them all.

use std::{io, sync::Arc};

use fairlead_api::Grant;
use fairlead_job::{Guest, ImageName};

use super::{
    choice::{Executors, kind_of},
    digests::{ImageKind, Seen, shortened},
    machine::Image,
    process::Place,
};
use crate::{blocking::blocking, facts::Facts};

impl Executors {
    /// Returns the digest of the image of a job that is about to start. `None`: no image, or it cannot be read.
    pub(crate) async fn image_digest(&self, grant: &Grant, place: &Place) -> Option<String> {
        let kind = kind_of(grant);
        let named = Guest::of(&grant.job, kind).ok()?.image;
        let (kind, default) = match place {
            Place::Host => return None,
            Place::Container(_) => (ImageKind::Dc, self.default_image.clone()),
            Place::Machine(_) => {
                let machines = self.machines.as_ref();
                (
                    ImageKind::Vm,
                    machines.map(|machines| machines.default.clone()),
                )
            }
        };
        let is_default = named.is_none();
        let name = named.or(default)?;
        if !is_default {
            let (digests, name) = (Arc::clone(&self.digests), name.clone());
            blocking(move || {
                digests.use_of(kind, &name);
                Ok(())
            })
            .await
            .ok()?;
        }
        let digest = match place {
            // The digest is of the fetched image, even if its name means another one by now.
            Place::Container(plan) => shortened(&plan.fetched.as_ref()?.id),
            Place::Host | Place::Machine(_) => self.digest(kind, &name).await?,
        };
        self.digests.saw(Seen {
            kind,
            name,
            digest: digest.clone(),
            is_default,
        });
        Some(digest)
    }

    /// Checks which images are present, of those that jobs named and of the default images.
    pub(crate) async fn look_at_images(&self) {
        let defaults = [
            (ImageKind::Dc, self.default_image.clone()),
            (
                ImageKind::Vm,
                self.machines.as_ref().map(|found| found.default.clone()),
            ),
        ];
        let mut seen = Vec::new();
        for (kind, default) in defaults {
            let named = self.digests.used(kind).into_iter();
            let named = named.map(|name| (name, false));
            let all = named.chain(default.map(|name| (name, true)));
            for (name, is_default) in all {
                let digest = self.digest(kind, &name).await;
                seen.extend(digest.map(|digest| Seen {
                    kind,
                    name,
                    digest,
                    is_default,
                }));
            }
        }
        self.digests.are(seen);
    }

    /// Returns the facts about images for the scheduler.
    pub(crate) fn image_facts(&self) -> Facts {
        self.digests.facts()
    }

    async fn digest(&self, kind: ImageKind, name: &str) -> Option<String> {
        match (kind, &self.engine, &self.machines) {
            (ImageKind::Dc, Some(engine), _) => {
                let image: ImageName = name.parse().ok()?;
                engine.id(&image).await.ok().map(|id| shortened(&id))
            }
            (ImageKind::Vm, _, Some(machines)) => {
                let (digests, images) = (Arc::clone(&self.digests), machines.images.clone());
                let name = name.to_owned();
                let read = blocking(move || {
                    let image = Image::find(&images, &name).map_err(io::Error::other)?;
                    digests.of_machine(&image)
                });
                let read = read.await;
                let read = read.inspect_err(|error| {
                    tracing::warn!(%error, "an image cannot be read; results of its jobs are not reused");
                });
                read.ok()
            }
            _ => None,
        }
    }
}
