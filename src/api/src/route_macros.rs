//! Makes the enum of all routes and the table of endpoints from one list.

/// The pattern of a path as the documentation writes it.
macro_rules! path_text {
    ([]) => { "/" };
    // compass-ci's `/boot.ipxe/mac/…`; its value has the prefix, too.
    ([boot_type $(, $($rest:tt)+)?]) => { concat!("/boot.:boot_type", $(path_text!([$($rest)+]))?) };
    ([$word:literal $(, $($rest:tt)+)?]) => { concat!("/", $word, $(path_text!([$($rest)+]))?) };
    ([$name:ident @ ..]) => { concat!("/*", stringify!($name)) };
    ([$name:ident $(, $($rest:tt)+)?]) => { concat!("/:", stringify!($name), $(path_text!([$($rest)+]))?) };
}

/// Makes the enum of all routes, the table, and what leads from one to the other.
macro_rules! routes {
    ($($path:tt $(if $guard:expr)? => {
        $($($method:literal)|+ $name:ident $({ $($field:ident: $kind:ident),+ })?, $caller:ident, $parameters:expr,
            $takes:expr => $answers:expr, $does:literal;)+
    })+) => {
        /// An endpoint, with what the names in its path stand for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Route<'a> {
            $($(
                #[doc = concat!("`", path_text!($path), "`")]
                $name $({
                    $(
                        #[doc = concat!("`", stringify!($field), "` of the path.")]
                        $field: $kind<'a>
                    ),+
                })?,
            )+)+
        }

        /// Every route, in the order of the documentation.
        pub const ENDPOINTS: &[Endpoint] = &[$($(
            Endpoint {
                methods: &[$($method),+],
                path: path_text!($path),
                caller: Caller::$caller,
                parameters: $parameters,
                does: $does,
            },
        )+)+];

        /// For the description of the interface, beside [`ENDPOINTS`]: each one's name, and what it takes and answers.
        #[cfg(test)]
        pub(crate) mod described {
            use crate::{openapi::content::*, *};

            pub(crate) const NAMES: &[&str] = &[$($(stringify!($name),)+)+];
            pub(crate) const CONTENTS: &[(Content, Content)] = &[$($(($takes, $answers),)+)+];
        }

        /// The place of each route in [`ENDPOINTS`].
        #[derive(Clone, Copy)]
        enum Row { $($($name),+),+ }

        impl<'a> Route<'a> {
            /// The route of a request. Otherwise the methods that its path takes; none: there is no such path.
            pub fn find(method: &str, segments: &'a [&'a str]) -> Result<Self, &'static [&'static str]> {
                match segments {
                    $($path $(if $guard)? => match method {
                        $($($method)|+ => Ok(Route::$name $({ $($field),+ })?),)+
                        _ => Err(&[$($($method),+),+]),
                    },)+
                    _ => Err(&[]),
                }
            }

            /// Its row in the table.
            pub fn endpoint(&self) -> &'static Endpoint {
                let row = match self {
                    $($(Route::$name { .. } => Row::$name,)+)+
                };
                &ENDPOINTS[row as usize]
            }

            /// What a name in its path stands for; empty: the path has no such name.
            pub fn value(&self, name: &str) -> &[&'a str] {
                match self {
                    $($(Route::$name $({ $($field),+ })? => {
                        $($(if name == stringify!($field) {
                            return $field.segments();
                        })+)?
                    })+)+
                }
                &[]
            }
        }
    };
}

pub(crate) use {path_text, routes};
