//! The file of `--keyFile`: the shared secret of the members of a replica set. The set has one
//! member here, so no other member logs in with the key. The file is checked as mongod checks it,
//! and the option turns access control on. (MongoDB manual, "Keyfile Security",
//! "security.keyFile".)

use super::given::check_size;
use crate::exit::Failure;
use std::fmt::Display;
use std::path::Path;
use yaml_rust2::{Yaml, YamlLoader};

/// The number of characters of a key, without white space.
const KEY_LENGTH: std::ops::RangeInclusive<usize> = 6..=1024;
/// The largest number of bytes that are read: two keys (during a rotation) with white space.
const FILE_BYTES_MAX: u64 = 16 << 10;

/// Fails unless the file contains a key, or a YAML list of keys, and only its owner can read it.
pub(crate) fn check(path: &str) -> Result<(), Failure> {
    let file = Path::new(path);
    let unreadable = |error: &dyn Display| bad(path, &format!("cannot be read: {error}"));
    let facts = std::fs::metadata(file).map_err(|error| unreadable(&error))?;
    if !facts.is_file() {
        return Err(bad(path, "is not a file"));
    }
    check_permissions(path, &facts)?;
    if facts.len() > FILE_BYTES_MAX {
        return Err(bad(path, &format!("is longer than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    let checked = keys(&text).and_then(|keys| keys.iter().try_for_each(|key| check_key(key)));
    checked.map_err(|error| bad(path, &error))
}

fn bad(path: &str, what: &str) -> Failure {
    Failure::options(format!("the key file {path} {what}"))
}

fn check_permissions(path: &str, facts: &std::fs::Metadata) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let mode = facts.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => {
            let text = format!("has permissions that are too open ({mode:04o}); use 0600 or 0400");
            Err(bad(path, &text))
        }
    }
}

/// Returns the keys in the text: one, or those of a YAML list.
fn keys(text: &str) -> Result<Vec<String>, String> {
    if !text.trim_start().starts_with(['-', '[']) {
        return Ok(vec![text.to_owned()]);
    }
    check_size(text)?;
    let documents = YamlLoader::load_from_str(text).map_err(|_| "is not YAML".to_owned())?;
    let list = documents.first().and_then(Yaml::as_vec).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| "does not contain a list of keys".to_owned())?;
    let key = |entry: &Yaml| match entry {
        Yaml::String(key) => Ok(key.clone()),
        Yaml::Integer(number) => Ok(number.to_string()),
        _ => Err("contains a key that is not a string".to_owned()),
    };
    list.iter().map(key).collect()
}

/// Fails unless the key has a valid length and valid characters. The errors do not contain the key.
fn check_key(key: &str) -> Result<(), String> {
    let is_space = |letter: char| letter.is_ascii_whitespace();
    let length = key.chars().filter(|letter| !is_space(*letter)).count();
    let is_base64 =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
    if !key.chars().all(|letter| is_space(letter) || is_base64(letter)) {
        return Err("contains a character that is not in base64".to_owned());
    }
    match KEY_LENGTH.contains(&length) {
        true => Ok(()),
        false => Err(format!(
            "contains a key of {length} characters; it must have {} to {}",
            KEY_LENGTH.start(),
            KEY_LENGTH.end()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_length_and_an_alphabet() {
        let checked =
            |text: &str| keys(text).and_then(|keys| keys.iter().try_for_each(|key| check_key(key)));
        assert_eq!(checked("abc+/9=\n"), Ok(()));
        assert_eq!(checked("a b c\nd e f\n"), Ok(()));
        assert_eq!(checked(&"k".repeat(1024)), Ok(()));
        assert_eq!(checked("- abcdef\n- ghijkl\n"), Ok(()));
        for (text, said) in [
            ("", "0 characters"),
            ("abcde", "5 characters"),
            (&"k".repeat(1025), "1025 characters"),
            ("abc!def", "not in base64"),
            ("abc\0def", "not in base64"),
            ("- abcdef\n- x\n", "1 characters"),
            ("- [a]\n", "not a string"),
            ("[]", "not contain a list"),
        ] {
            let error = checked(text).unwrap_err();
            assert!(error.contains(said), "{text:?}: {error}");
            assert!(text.len() < 5 || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn others_must_not_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let name = path.to_str().unwrap();
        assert!(check(name).unwrap_err().message.contains("cannot be read"));
        std::fs::write(&path, "c2VjcmV0IGtleQ==").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            check(name).map_err(|failure| failure.message)
        };
        assert_eq!((with(0o600), with(0o400)), (Ok(()), Ok(())));
        for mode in [0o640, 0o604, 0o644, 0o610] {
            assert!(with(mode).unwrap_err().contains("too open"), "{mode:o}");
        }
        let directory = directory.path().to_str().unwrap();
        assert!(check(directory).unwrap_err().message.contains("is not a file"));
    }
}
