//! Encryption of connections.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Not at all.
    Disable,
    /// They are, and the server's certificate is checked only against a root certificate that was
    /// given.
    Require,
    /// They are, and the certificate has to be valid and of that host.
    VerifyFull,
}

/// How connections are encrypted, and by which certificates.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The mode.
    pub mode: TlsMode,
    /// A file of root certificates, instead of those of the system.
    pub root: Option<PathBuf>,
    /// Files of a client certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// The default for these hosts: none on this machine alone, else all checks.
    #[must_use]
    pub fn for_hosts(config: &tokio_postgres::Config) -> Self {
        let is_local = |host: &Host| match host {
            Host::Tcp(name) => {
                let address = name.parse::<std::net::IpAddr>();
                name == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
            Host::Unix(_) => true,
        };
        let local = config.get_hosts().iter().all(is_local)
            && config
                .get_hostaddrs()
                .iter()
                .all(std::net::IpAddr::is_loopback);
        Self {
            mode: match local {
                true => TlsMode::Disable,
                false => TlsMode::VerifyFull,
            },
            root: None,
            identity: None,
        }
    }

    /// Reads the certificates. `None`: no encryption.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub(super) fn connector(&self) -> Result<Option<MakeRustlsConnect>, String> {
        if self.mode == TlsMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match (self.mode, &self.root) {
            (TlsMode::Require, None) => Arc::new(Unverified(Arc::clone(&provider))),
            (_, root) => {
                let roots = Arc::new(roots(root.as_deref())?);
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                    .build()
                    .map_err(|error| format!("no root certificate can be used: {error}"))?
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &self.identity {
            None => config.with_no_client_auth(),
            Some((cert, key)) => {
                let certs = certificates(cert)?;
                let private =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
                config
                    .with_client_auth_cert(certs, private)
                    .map_err(|error| format!("{}: {error}", cert.display()))?
            }
        };
        Ok(Some(MakeRustlsConnect::new(config)))
    }
}

fn unreadable(file: &Path, error: &pem::Error) -> String {
    format!("{}: {error}", file.display())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certs = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    certs.map_err(|error| unreadable(file, &error))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for cert in certificates(file)? {
                let added = roots.add(cert);
                added.map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    Ok(roots)
}

/// Accepts any certificate, and checks that the server has its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let schemes = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_of_this_machine_are_plain() {
        let mode = |text: &str| Tls::for_hosts(&text.parse().unwrap()).mode;
        assert_eq!(mode("host=127.0.0.1,localhost,::1"), TlsMode::Disable);
        assert_eq!(mode("host=/run/postgresql"), TlsMode::Disable);
        assert_eq!(mode("host=127.0.0.1,db2"), TlsMode::VerifyFull);
        let by_address = "host=localhost hostaddr=192.0.2.7";
        assert_eq!(mode(by_address), TlsMode::VerifyFull);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let tls = Tls {
            mode: TlsMode::VerifyFull,
            root: Some("/nonexistent/root.crt".into()),
            identity: None,
        };
        let error = tls.connector().err().unwrap();
        assert!(error.starts_with("/nonexistent/root.crt: "), "{error}");
    }
}
