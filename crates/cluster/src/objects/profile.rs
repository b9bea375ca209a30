//! Keys of a bucket from the profiles of `~/.aws`, which `object_store` does not read.

use super::failure::BucketError;
use crate::address::Environment;
use crate::ini;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

/// How long keys without an end are used before they are read again: programs replace them.
const FRESH: Duration = Duration::from_secs(60);
/// Keys are replaced this long before they end.
const BEFORE_END: Duration = Duration::from_secs(300);
/// Largest file that is read, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// A profile: a section of the file of keys, and one of the file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    name: String,
    keys: Option<PathBuf>,
    settings: Option<PathBuf>,
}

/// What a program that is named by `credential_process` prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl Profile {
    /// The profile with the keys of this user; `None`: keys come from the environment or from a
    /// role of the machine.
    ///
    /// # Errors
    /// If a profile is named that does not exist, or has no keys.
    pub(super) fn find(by: &Environment) -> Result<Option<Self>, BucketError> {
        let variables = ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"];
        if variables.iter().any(|name| by.text(name).is_some()) {
            return Ok(None);
        }
        let profile = Self::of(by);
        let is_named = by.text("AWS_PROFILE").is_some();
        match profile.section() {
            Err(error) => Err(error),
            Ok(section) if has_keys(&section) => Ok(Some(profile)),
            Ok(_) if !is_named => Ok(None),
            Ok(section) if section.is_empty() => Err(profile.fails("does not exist")),
            Ok(_) => Err(profile.fails(
                "has no keys and no credential_process; for other ways, `aws configure \
                 export-credentials` can be its credential_process",
            )),
        }
    }

    fn of(by: &Environment) -> Self {
        let file = |variable: &str, name: &str| by.path(variable).or_else(|| by.in_home(name));
        Self {
            name: by.text("AWS_PROFILE").unwrap_or_else(|| "default".into()),
            keys: file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
            settings: file("AWS_CONFIG_FILE", ".aws/config"),
        }
    }

    /// The region of this user's profile.
    pub(super) fn region(by: &Environment) -> Result<Option<String>, BucketError> {
        Ok(Self::of(by).section()?.remove("region"))
    }

    /// The keys of both sections; those of the file of keys win.
    fn section(&self) -> Result<BTreeMap<String, String>, BucketError> {
        let in_settings = match self.name.as_str() {
            "default" => "default".into(),
            name => format!("profile {name}"),
        };
        let mut all = BTreeMap::new();
        for (file, name) in [(&self.settings, &in_settings), (&self.keys, &self.name)] {
            let Some(file) = file.as_deref().filter(|file| file.exists()) else {
                continue;
            };
            let text = read(file).map_err(|why| {
                BucketError::Keys(format!("{} cannot be read: {why}", file.display()))
            })?;
            all.extend(ini::section(&text, name).unwrap_or_default());
        }
        Ok(all)
    }

    fn fails(&self, why: &str) -> BucketError {
        BucketError::Keys(format!("profile {} of ~/.aws {why}", self.name))
    }

    /// The keys, and when they are to be read again.
    fn load(&self) -> Result<(AwsCredential, SystemTime), BucketError> {
        let mut section = self.section()?;
        let program = section.remove("credential_process");
        let mut take = |key: &str| section.remove(key);
        let keys = take("aws_access_key_id").zip(take("aws_secret_access_key"));
        let Some((key_id, secret_key)) = keys else {
            let program = program.ok_or_else(|| self.fails("has no keys any more"))?;
            return self.run(&program);
        };
        let token = take("aws_session_token");
        let keys = AwsCredential {
            key_id,
            secret_key,
            token,
        };
        Ok((keys, SystemTime::now() + FRESH))
    }

    fn run(&self, program: &str) -> Result<(AwsCredential, SystemTime), BucketError> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(program).stdin(Stdio::null());
        // Its messages go to this program's standard error.
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| {
            self.fails(&format!("has a credential_process that fails: {error}"))
        })?;
        if !output.status.success() {
            let status = output.status;
            return Err(self.fails(&format!("has a credential_process that fails: {status}")));
        }
        // The text of the error could contain a part of the keys.
        let printed: Printed = serde_json::from_slice(&output.stdout)
            .map_err(|_| self.fails("has a credential_process that prints no keys"))?;
        let until = match printed.expiration {
            None => SystemTime::now() + FRESH,
            Some(text) => DateTime::parse_from_rfc3339(&text)
                .map(|time| SystemTime::from(time.with_timezone(&Utc)) - BEFORE_END)
                .map_err(|_| self.fails("has a credential_process with a malformed Expiration"))?,
        };
        let keys = AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token,
        };
        Ok((keys, until))
    }
}

fn has_keys(section: &BTreeMap<String, String>) -> bool {
    let has = |key: &str| section.contains_key(key);
    has("credential_process") || has("aws_access_key_id") && has("aws_secret_access_key")
}

fn read(file: &Path) -> std::io::Result<String> {
    if file.metadata()?.len() > FILE_MAX {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    std::fs::read_to_string(file)
}

/// The keys of a profile, read again when they get old.
pub(super) struct Keys {
    profile: Profile,
    /// Guards the keys in use, and when they get old.
    current: Mutex<Option<(Arc<AwsCredential>, SystemTime)>>,
}

impl Keys {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            current: Mutex::new(None),
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({:?})", self.profile.name)
    }
}

#[async_trait]
impl CredentialProvider for Keys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut current = self.current.lock().await;
        if let Some((keys, until)) = &*current
            && SystemTime::now() < *until
        {
            return Ok(Arc::clone(keys));
        }
        let profile = self.profile.clone();
        let loaded = tokio::task::spawn_blocking(move || profile.load()).await?;
        let refused = |error| object_store::Error::Unauthenticated {
            path: String::new(),
            source: Box::new(error),
        };
        let (keys, until) = loaded.map_err(refused)?;
        let keys = Arc::new(keys);
        *current = Some((Arc::clone(&keys), until));
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn with(home: &Path, more: &[(&'static str, &str)]) -> Environment {
        let mut all = vec![("HOME", home.as_os_str().to_owned())];
        all.extend(
            more.iter()
                .map(|(name, value)| (*name, OsString::from(value))),
        );
        let find = move |name: &str| {
            let mut all = all.iter();
            all.find(|(key, _)| *key == name)
                .map(|(_, value)| value.clone())
        };
        Environment::new(find, "me".into())
    }

    fn home(keys: &str, settings: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".aws");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("credentials"), keys).unwrap();
        std::fs::write(folder.join("config"), settings).unwrap();
        home
    }

    fn loaded(by: &Environment) -> AwsCredential {
        Profile::find(by).unwrap().unwrap().load().unwrap().0
    }

    #[test]
    fn keys_come_from_the_profile_that_is_named() {
        let home = home(
            "[default]\naws_access_key_id=a\naws_secret_access_key=b\n[x]\naws_access_key_id = c\n\
             aws_secret_access_key = d\naws_session_token = e\n",
            "[profile x]\nregion = eu-north-1\n",
        );
        let keys = loaded(&with(home.path(), &[]));
        assert_eq!(
            (&*keys.key_id, &*keys.secret_key, &keys.token),
            ("a", "b", &None)
        );
        let named = with(home.path(), &[("AWS_PROFILE", "x")]);
        let keys = loaded(&named);
        assert_eq!((&*keys.key_id, keys.token.as_deref()), ("c", Some("e")));
        let region = Profile::region(&named).unwrap();
        assert_eq!(region.as_deref(), Some("eu-north-1"));
    }

    #[test]
    fn keys_of_the_environment_win_and_a_missing_profile_is_named() {
        let home = home("", "[profile sso]\nsso_session = s\n");
        assert_eq!(Profile::find(&with(home.path(), &[])), Ok(None));
        let own = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_PROFILE", "y")];
        assert_eq!(Profile::find(&with(home.path(), &own)), Ok(None));
        for (name, part) in [("y", "does not exist"), ("sso", "credential_process")] {
            let named = with(home.path(), &[("AWS_PROFILE", name)]);
            let error = Profile::find(&named).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_program_prints_keys_that_end() {
        let printed = r#"{"Version":1,"AccessKeyId":"a","SecretAccessKey":"s","SessionToken":"t","Expiration":"2999-01-01T00:00:00Z"}"#;
        let home = home(
            "",
            &format!("[default]\ncredential_process = printf '%s' '{printed}'\n"),
        );
        let by = with(home.path(), &[]);
        let profile = Profile::find(&by).unwrap().unwrap();
        let (keys, until) = profile.load().unwrap();
        assert_eq!((&*keys.secret_key, keys.token.as_deref()), ("s", Some("t")));
        assert!(until > SystemTime::now() + Duration::from_secs(1 << 30));
        for (program, part) in [("false", "fails"), ("echo secret", "prints no keys")] {
            let settings = format!("[default]\ncredential_process = {program}\n");
            std::fs::write(home.path().join(".aws/config"), settings).unwrap();
            let error = profile.load().err().unwrap().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{error}");
        }
    }
}
