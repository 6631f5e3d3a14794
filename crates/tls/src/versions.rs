//! The supported versions of the TLS protocol.

use crate::TlsError;
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

/// The enabled versions: TLS 1.2 and TLS 1.3, unless one is disabled. Older versions are not
/// supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    tls12: bool,
    tls13: bool,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { tls12: true, tls13: true }
    }
}

impl Versions {
    /// Returns the versions that a list such as `TLS1_0,TLS1_2` does not disable; `none` disables
    /// nothing.
    ///
    /// # Errors
    /// The list has an unknown name, or disables every version.
    pub fn without(disabled: &str) -> Result<Versions, TlsError> {
        let mut versions = Versions::default();
        for name in disabled.split(',').map(str::trim) {
            match name {
                "TLS1_0" | "TLS1_1" | "none" => {}
                "TLS1_2" => versions.tls12 = false,
                "TLS1_3" => versions.tls13 = false,
                _ => {
                    return Err(TlsError::new(format!("Unrecognized disabledProtocols '{name}'")));
                }
            }
        }
        match versions.tls12 || versions.tls13 {
            true => Ok(versions),
            false => Err(TlsError::new("no version of TLS is left: TLS 1.2 or 1.3 is needed")),
        }
    }

    pub(crate) fn list(self) -> Vec<&'static SupportedProtocolVersion> {
        [(self.tls13, &TLS13), (self.tls12, &TLS12)]
            .into_iter()
            .filter_map(|(spoken, version)| spoken.then_some(version))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_disables_versions() {
        let left = |list: &str| Versions::without(list).map(|versions| versions.list().len());
        assert_eq!(left("none"), Ok(2));
        assert_eq!(left("TLS1_0,TLS1_1"), Ok(2));
        assert_eq!(left("TLS1_0, TLS1_2"), Ok(1));
        assert!(left("TLS1_2,TLS1_3").is_err());
        assert!(left("SSL3").unwrap_err().to_string().contains("Unrecognized"));
    }
}
