//! Living hosts by their class: a result counts only where a host of its class could run the job now.

use std::collections::{BTreeMap, HashMap};

use fairlead_store::JobState;

use crate::reuse::ReuseFlow;
use fairlead_known::{
    feasibility::Wants,
    reuse::{Class, IMAGES, Known},
};

/// Living hosts by class, and which jobs they could run.
#[derive(Debug, Default)]
pub(super) struct Living {
    by_class: BTreeMap<Class, Vec<String>>,
    could: HashMap<Asked, bool>,
}

/// What a job wants, whose it is, and the class and the image that it is asked for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Asked {
    wants: Wants,
    account: String,
    class: Class,
    image: String,
}

impl ReuseFlow {
    /// The living hosts that say what they are, and are open.
    pub(super) fn living_hosts(&self) -> Living {
        let mut living = Living::default();
        let now_ms = self.ctx.clock.wall_ms();
        self.lab.hosts.each(|name, host| {
            if host.is_heard(now_ms)
                && let Some(class) = Class::of(host)
            {
                living
                    .by_class
                    .entry(class)
                    .or_default()
                    .push(name.to_owned());
            }
        });
        living.by_class.values_mut().for_each(|names| {
            names.retain(|name| self.lab.cordons.of(name).is_none());
        });
        living
    }

    /// Whether a host told that it has this image, as it is.
    fn has_image(&self, name: &str, image: &str) -> bool {
        let host = self.lab.hosts.get(name);
        let facts = host.map(|host| host.all_facts()).unwrap_or_default();
        let images = facts.get(IMAGES);
        images.is_some_and(|images| images.iter().any(|has| has == image))
    }
}

impl Living {
    /// Whether a host of the class of this result, with the same image, could run the job.
    pub(super) fn could_run(&mut self, flow: &ReuseFlow, state: &JobState, known: &Known) -> bool {
        self.could_run_in(flow, state, &known.class, &known.image)
    }

    /// `image`: empty: any.
    fn could_run_in(
        &mut self,
        flow: &ReuseFlow,
        state: &JobState,
        class: &Class,
        image: &str,
    ) -> bool {
        let Some(names) = self.by_class.get(class) else {
            return false;
        };
        let asked = Asked {
            wants: Wants::of(state),
            account: state.account.clone(),
            class: class.clone(),
            image: image.to_owned(),
        };
        if let Some(known) = self.could.get(&asked) {
            return *known;
        }
        let could = names.iter().any(|name| {
            let served = flow.placement.served_accounts(name);
            (served.is_empty() || served.contains(&state.account))
                && (image.is_empty() || flow.has_image(name, image))
                && flow.placement.could_run(state, name)
        });
        self.could.insert(asked, could);
        could
    }

    /// How the most similar class of living hosts that could run the job differs from that of this result, in words.
    pub(super) fn why_not(&mut self, flow: &ReuseFlow, state: &JobState, known: &Known) -> String {
        let class = &known.class;
        if self.could_run_in(flow, state, class, "") {
            let image = &known.image;
            return format!("no living host of its class has its image as it was: {image}");
        }
        let classes: Vec<Class> = self.by_class.keys().cloned().collect();
        let mut able = classes.into_iter();
        let able: Vec<Class> = able
            .by_ref()
            .filter(|other| self.could_run_in(flow, state, other, ""))
            .collect();
        let nearest = able.iter().map(|other| class.differing(other));
        let Some(differs) = nearest.min_by_key(Vec::len) else {
            return "no living host that says what it is could run the job".to_owned();
        };
        let words = differs.iter().map(|(part, was, now)| {
            let shown = |text: &str| {
                if text.is_empty() {
                    "none".to_owned()
                } else {
                    format!("'{text}'")
                }
            };
            format!("{part} {} is now {}", shown(was), shown(now))
        });
        format!(
            "no living host has its class: {}",
            words.collect::<Vec<_>>().join(", ")
        )
    }
}
