//! The guest that a job runs in, a container or a virtual machine: its image and its network.

use serde_json::Value;

use crate::{
    FieldError, ImageName, NoImageName, Spec, TboxType,
    fields::read::{Charset, checked, present, refuse},
    units::shown,
};

/// The longest name of an image, bytes.
const IMAGE_BYTES_MAX: usize = 255;

/// The tag of hosts that run containers: a job that names an image goes to no other.
pub const CONTAINER_TAG: &str = "executor-container";

/// The tag of hosts that have this image of virtual machines: a job that names it goes to no other.
#[must_use]
pub fn vm_image_tag(image: &str) -> String {
    format!("vm-image-{image}")
}

/// Network of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing but itself.
    #[default]
    None,
    /// The network of its host, by address translation.
    Bridge,
}

/// Guest in which a job runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guest {
    /// The image that it names, 1 to 255 bytes without spaces: `vm_image` of a vm job, `docker_image` of others. The latter
    /// is an [`ImageName`], as it was written.
    /// `None`: the testbox decides. A job that names one never runs as a process of the host.
    pub image: Option<String>,
    /// Network of the guest. Default: nothing.
    pub network: Network,
}

impl Guest {
    /// The tag that a host must have for it; `None`: any host will do.
    pub(crate) fn tag(&self, kind: TboxType) -> Option<String> {
        let image = self.image.as_ref()?;
        Some(match kind {
            TboxType::Vm => vm_image_tag(image),
            TboxType::Dc | TboxType::Hw => CONTAINER_TAG.to_owned(),
        })
    }

    /// Reads `docker_image` or `vm_image`, and `network`, of a job of this kind.
    ///
    /// # Errors
    /// A value that is no name of an image, or no word for a network.
    pub fn of(spec: &Spec, kind: TboxType) -> Result<Self, FieldError> {
        let field = match kind {
            TboxType::Vm => "vm_image",
            TboxType::Dc | TboxType::Hw => "docker_image",
        };
        let image = present(spec, field).map(|value| match kind {
            TboxType::Vm => vm_image(field, value),
            TboxType::Dc | TboxType::Hw => docker_image(field, value),
        });
        Ok(Self {
            image: image.transpose()?,
            network: network(spec)?,
        })
    }
}

/// An image of a registry, and nothing that the host itself has: its engine runs as root, and could read any file.
fn docker_image(field: &str, value: &Value) -> Result<String, FieldError> {
    let name = checked(field, value, Charset::Text, IMAGE_BYTES_MAX)?;
    match name.parse::<ImageName>() {
        Ok(_) => Ok(name),
        Err(NoImageName) => refuse(
            field,
            format!("{} is no name of an image in a registry", shown(value)),
            NoImageName::HINT,
        ),
    }
}

fn vm_image(field: &str, value: &Value) -> Result<String, FieldError> {
    let name = checked(field, value, Charset::Text, IMAGE_BYTES_MAX)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
    let begins = name
        .as_bytes()
        .first()
        .is_some_and(u8::is_ascii_alphanumeric);
    if !begins || !name.bytes().all(is_plain) || name.split('/').any(|part| part == "..") {
        let problem = format!("{} is no name of an image", shown(value));
        return refuse(
            field,
            problem,
            "a word such as busybox, as the testboxes name it",
        );
    }
    Ok(name)
}

fn network(spec: &Spec) -> Result<Network, FieldError> {
    match present(spec, "network") {
        None => Ok(Network::None),
        Some(Value::String(word)) if word.trim() == "none" => Ok(Network::None),
        Some(Value::String(word)) if word.trim() == "bridge" => Ok(Network::Bridge),
        Some(other) => refuse(
            "network",
            format!("{} is no network of a guest", shown(other)),
            "none, or bridge to reach other machines",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(spec: &Value, kind: TboxType) -> Result<Guest, FieldError> {
        Guest::of(spec.as_object().unwrap(), kind)
    }

    #[test]
    fn each_kind_of_job_has_its_own_image() {
        let both = json!({"docker_image": "debian:12", "vm_image": "busybox", "network": "bridge"});
        for (kind, image) in [
            (TboxType::Dc, "debian:12"),
            (TboxType::Hw, "debian:12"),
            (TboxType::Vm, "busybox"),
        ] {
            let guest = of(&both, kind).unwrap();
            assert_eq!(guest.image.as_deref(), Some(image));
            assert_eq!(guest.network, Network::Bridge);
        }
        assert_eq!(
            of(&json!({"docker_image": ""}), TboxType::Dc),
            Ok(Guest::default())
        );
    }

    #[test]
    fn what_is_no_image_or_no_network_is_refused() {
        for image in [
            "--privileged",
            "a b",
            "../x",
            "a/../b",
            "a\nb",
            &"a".repeat(256),
        ] {
            let refused = of(&json!({"docker_image": image}), TboxType::Dc).unwrap_err();
            assert_eq!(refused.field, "docker_image", "{image}");
            let refused = of(&json!({"vm_image": image}), TboxType::Vm).unwrap_err();
            assert_eq!(refused.field, "vm_image", "{image}");
        }
        let archive = json!({"docker_image": "docker-archive:/etc/hostname"});
        for kind in [TboxType::Dc, TboxType::Hw] {
            let refused = of(&archive, kind).unwrap_err();
            assert!(refused.problem.contains("docker-archive:/etc"), "{refused}");
            assert!(refused.hint.contains("debian:12"), "{refused:?}");
        }
        for network in [json!("host"), json!(["none"]), json!(1)] {
            let refused = of(&json!({"network": network}), TboxType::Dc).unwrap_err();
            assert!(refused.hint.contains("bridge"), "{refused:?}");
        }
    }
}
