//! The variables and folders that libpq reads.

use std::ffi::OsString;
use std::path::PathBuf;

type Variable = dyn Fn(&str) -> Option<OsString>;

/// The environment of a process: variables, and the user.
pub struct Environment {
    variable: Box<Variable>,
    user: String,
}

impl Environment {
    /// That of this process, for this user.
    #[must_use]
    pub fn of_process(user: String) -> Self {
        Self::new(|name| std::env::var_os(name), user)
    }

    /// Variables by a function, and the name of the user.
    #[must_use]
    pub fn new(variable: impl Fn(&str) -> Option<OsString> + 'static, user: String) -> Self {
        Self {
            variable: Box::new(variable),
            user,
        }
    }

    /// The value of a variable, if it is set, not empty, and UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name)?.into_string().ok()?;
        (!value.is_empty()).then_some(value)
    }

    /// The path in a variable.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name)?;
        (!value.is_empty()).then(|| value.into())
    }

    /// A file in the home folder.
    pub(crate) fn in_home(&self, name: &str) -> Option<PathBuf> {
        self.path("HOME").map(|home| home.join(name))
    }

    /// The name of the user.
    pub(super) fn user(&self) -> &str {
        &self.user
    }
}
