//! Why a bucket cannot be used, and what helps.

use std::error::Error;
use std::fmt::Display;
use thiserror::Error;

/// A bucket that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BucketError {
    /// The bucket's URL is none.
    #[error("bucket={0} is neither s3://NAME/PREFIX nor file:///FOLDER")]
    Url(String),
    /// The endpoint is none. It may contain a secret, so it is not shown.
    #[error("endpoint= is neither http://HOST:PORT nor https://HOST:PORT")]
    Endpoint,
    /// The keys cannot be read.
    #[error("{0}")]
    Keys(String),
    /// There is no such bucket.
    #[error("{0} does not exist")]
    Missing(String),
    /// The keys are wrong, or do not allow this.
    #[error("{0} refuses the keys: {1}")]
    Refused(String, String),
    /// It is in another region.
    #[error("{0} is in another region: {1}")]
    Region(String, String),
    /// Nobody answers.
    #[error("{0} does not answer: {1}")]
    Silent(String, String),
    /// It belongs to another file system.
    #[error("{0} holds the objects of another file system: {1}")]
    Other(String, String),
    /// It belongs to no file system.
    #[error("{0} holds no objects of this file system: it has no mark of {1}")]
    Unmarked(String, String),
    /// Anything else.
    #[error("{0}: {1}")]
    Failed(String, String),
}

impl BucketError {
    /// What helps.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Url(_) => "for example bucket=s3://team-files/home",
            Self::Endpoint => "for example endpoint=https://storage.example.org",
            Self::Keys(_) | Self::Refused(..) => {
                "keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from the profile \
                 AWS_PROFILE of ~/.aws/credentials, or from the machine's role; they need the \
                 rights to get, put, delete and list"
            }
            Self::Missing(_) => "make it first, or correct bucket=",
            Self::Region(..) => "give the bucket's region: region=",
            Self::Silent(..) => "check endpoint=, and the network",
            Self::Other(..) => "choose another bucket or prefix: bucket=s3://NAME/PREFIX",
            Self::Unmarked(..) => "check that it is the bucket that mkfs was given",
            Self::Failed(..) => "the server's log may tell why",
        }
    }

    /// The error that a store answered, from its text: a store tells the reasons apart in it only.
    pub(super) fn of(place: &dyn Display, error: &object_store::Error) -> Self {
        let text = chain(error);
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let place = place.to_string();
        let reason = code(&text).map_or_else(|| text.clone(), str::to_owned);
        if has(&["NoSuchBucket"]) {
            Self::Missing(place)
        } else if has(&[
            "PermanentRedirect",
            "AuthorizationHeaderMalformed",
            "301 Moved",
        ]) {
            Self::Region(place, reason)
        } else if has(&REFUSALS) || is_refusal(error) {
            Self::Refused(place, reason)
        } else if has(&["error sending request", "HTTP error", "timed out"]) {
            Self::Silent(place, last(error))
        } else {
            Self::Failed(place, reason)
        }
    }
}

/// Codes of S3 for keys that it does not accept, and how a missing role shows itself.
const REFUSALS: [&str; 7] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "ExpiredToken",
    "InvalidToken",
    "169.254.169.254",
    "RequestTimeTooSkewed",
];

fn is_refusal(error: &object_store::Error) -> bool {
    use object_store::Error::{PermissionDenied, Unauthenticated};
    matches!(error, PermissionDenied { .. } | Unauthenticated { .. })
}

/// The code and the message in an answer of S3.
fn code(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<Code>")?;
    after.split_once("</Code>").map(|(code, _)| code)
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// The first cause.
fn last(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
