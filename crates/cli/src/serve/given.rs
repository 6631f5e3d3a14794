//! The given options as text: the command line first, then the configuration file.

use super::options::{self, ServeOption, Status, Takes};
use crate::call::did_you_mean;
use crate::exit::Failure;
use lexopt::{Arg, Parser};
use std::collections::BTreeMap;
use std::ffi::OsString;
use yaml_rust2::parser::{Event, Parser as YamlParser};
use yaml_rust2::{Yaml, YamlLoader};

/// The largest number of values in a configuration file: some thirty times the number of options.
const VALUES_MAX: usize = 10_000;
/// The largest depth of nested maps and lists.
const DEPTH_MAX: usize = 100;

/// The given options by name; only a pair may be given several times.
#[derive(Debug, Default)]
pub(crate) struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
}

impl Given {
    /// Returns the value of an option.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|values| values.last()).map(String::as_str)
    }

    /// Returns all values of an option.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a flag was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns every option with its values, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static ServeOption, &[String])> {
        let rows = self.values.iter();
        rows.filter_map(|(name, values)| Some((options::by_name(name)?, values.as_slice())))
    }

    /// Parses the words after the program's name.
    pub(crate) fn from_words(words: &[OsString], program: &str) -> Result<Given, Failure> {
        let mut given = Given::default();
        let mut parser = Parser::from_args(words.iter().cloned());
        let bad = |text: String| {
            Failure::options(format!(
                "Error parsing command line: {text}\ntry '{program} --help' for more information"
            ))
        };
        while let Some(word) = parser.next().map_err(|error| bad(error.to_string()))? {
            let (option, shown) = match &word {
                Arg::Long(name) => (options::by_name(name), format!("--{name}")),
                Arg::Short(letter) => (options::by_letter(*letter), format!("-{letter}")),
                Arg::Value(value) => {
                    return Err(bad(format!("unexpected word '{}'", value.to_string_lossy())));
                }
            };
            let verbose_letter = word == Arg::Short('v');
            let option = option.ok_or_else(|| {
                let names: Vec<String> = options::names().map(|name| format!("--{name}")).collect();
                let near = did_you_mean(&shown, names.iter().map(String::as_str));
                bad(format!("unrecognised option '{shown}'{near}"))
            })?;
            let value = match option.takes {
                Takes::Flag => String::new(),
                _ if verbose_letter => "1".to_owned(),
                _ => {
                    let value = parser.value().map_err(|error| bad(error.to_string()))?;
                    value.into_string().map_err(|_| bad(format!("{shown} is not UTF-8")))?
                }
            };
            if !verbose_letter && option.name != "verbose" {
                given.check_once(option, &shown).map_err(bad)?;
            }
            given.add(option, value)?;
        }
        Ok(given)
    }

    /// Adds the options of a configuration file that the command line does not set.
    pub(crate) fn add_file(&mut self, text: &str, path: &str) -> Result<(), Failure> {
        let bad = |what: String| Failure::options(format!("Error parsing {path}: {what}"));
        check_size(text).map_err(bad)?;
        let documents = YamlLoader::load_from_str(text).map_err(|error| bad(error.to_string()))?;
        let mut from_file = Given::default();
        match documents.as_slice() {
            [] => {}
            [document] => {
                from_file.add_yaml("", document).map_err(|failure| bad(failure.message))?
            }
            _ => return Err(bad("there is more than one document in it".to_owned())),
        }
        for (name, values) in from_file.values {
            let pairs = name == "setParameter";
            let entry = self.values.entry(name);
            match entry {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(values);
                }
                std::collections::btree_map::Entry::Occupied(mut slot) if pairs => {
                    let mut merged = values;
                    merged.append(slot.get_mut());
                    slot.insert(merged);
                }
                std::collections::btree_map::Entry::Occupied(_) => {}
            }
        }
        Ok(())
    }

    fn add_yaml(&mut self, path: &str, value: &Yaml) -> Result<(), Failure> {
        if path == "setParameter" {
            return self.add_parameters(value);
        }
        if let Some(option) = options::by_path(path) {
            let text = scalar(value)
                .ok_or_else(|| Failure::options(format!("{path} must be a single value")))?;
            return match (option.takes, text.as_str()) {
                (Takes::Flag, "true") => self.add(option, String::new()),
                (Takes::Flag, "false") => Ok(()),
                (Takes::Flag, _) => Err(Failure::options(format!("{path} must be true or false"))),
                _ => self.add(option, text),
            };
        }
        match value {
            Yaml::Hash(fields) => fields.iter().try_for_each(|(key, inner)| {
                let key = scalar(key).unwrap_or_default();
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                self.add_yaml(&path, inner)
            }),
            Yaml::Null if path.is_empty() || is_section(path) => Ok(()),
            _ => {
                let near = did_you_mean(path, options::OPTIONS.iter().map(|option| option.config));
                Err(Failure::options(format!("Unrecognized option: {path}{near}")))
            }
        }
    }

    fn add_parameters(&mut self, value: &Yaml) -> Result<(), Failure> {
        let bad = || Failure::options("setParameter must be a map of names and values");
        let Some(option) = options::by_name("setParameter") else { return Err(bad()) };
        for (name, value) in value.as_hash().ok_or_else(bad)? {
            let (name, value) = scalar(name).zip(scalar(value)).ok_or_else(bad)?;
            self.add(option, format!("{name}={value}"))?;
        }
        Ok(())
    }

    fn check_once(&self, option: &ServeOption, shown: &str) -> Result<(), String> {
        let again = self.values.contains_key(option.name);
        match option.takes {
            Takes::Text(_) | Takes::Number(_) if again => {
                Err(format!("option '{shown}' cannot be specified more than once"))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, option: &'static ServeOption, value: String) -> Result<(), Failure> {
        let name = option.name;
        if let (Status::Refused(why), false) =
            (option.status, option.harmless.contains(&value.as_str()))
        {
            let asked = if option.config.is_empty() || !option.harmless.is_empty() {
                format!("--{name} {value}")
            } else {
                format!("--{name}")
            };
            return Err(Failure::options(format!("{} is refused: {why}", asked.trim_end())));
        }
        if let Takes::Number(_) = option.takes
            && value.parse::<i64>().is_err()
        {
            let text = format!(
                "the argument ('{value}') for option '--{name}' is invalid: it must be a whole number"
            );
            return Err(Failure::options(text));
        }
        if let Takes::Pair(_) = option.takes
            && !value.contains('=')
        {
            let text = format!("Illegal option assignment: \"{value}\"; --{name} takes NAME=VALUE");
            return Err(Failure::options(text));
        }
        self.values.entry(name).or_default().push(value);
        Ok(())
    }
}

/// Returns true if the path of some option begins with this one.
fn is_section(path: &str) -> bool {
    let within = |option: &ServeOption| {
        option.config.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    options::OPTIONS.iter().any(within)
}

/// Fails for a file that would expand to very many values: an alias is replaced by a full copy of
/// its anchor, so a few lines can need more memory than there is.
pub(crate) fn check_size(text: &str) -> Result<(), String> {
    let mut events = YamlParser::new_from_str(text);
    // The number of values of each anchor; the open anchors with the count before them.
    let mut anchors: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut values = 0usize;
    loop {
        let (event, _) = events.next_token().map_err(|error| error.to_string())?;
        match event {
            Event::StreamEnd => return Ok(()),
            Event::Scalar(_, _, anchor, _) => {
                values += 1;
                anchors.insert(anchor, 1);
            }
            Event::Alias(anchor) => values += anchors.get(&anchor).copied().unwrap_or(1),
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, values));
                values += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = open.pop() {
                    anchors.insert(anchor, values - before);
                }
            }
            _ => {}
        }
        if values > VALUES_MAX || open.len() > DEPTH_MAX {
            return Err(format!(
                "it has more than {VALUES_MAX} values, with aliases counted in full, or nests deeper than {DEPTH_MAX}"
            ));
        }
    }
}

fn scalar(value: &Yaml) -> Option<String> {
    match value {
        Yaml::String(text) | Yaml::Real(text) => Some(text.clone()),
        Yaml::Integer(number) => Some(number.to_string()),
        Yaml::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Result<Given, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Given::from_words(&words, "quire serve")
    }

    /// A regression test: ten lines of aliases took all memory.
    #[test]
    fn a_file_of_aliases_is_refused_before_it_is_unfolded() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let inner = format!("*a{}", level - 1);
            let list = vec![inner; 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        let refused = |text: &str| match Given::default().add_file(text, "c.yaml") {
            Ok(()) => panic!("{text:.40} was taken"),
            Err(failure) => failure.message,
        };
        assert!(refused(&text).contains("more than 10000 values"), "{}", refused(&text));
        assert!(!refused(&"[".repeat(100_000)).is_empty());
        let mut given = Given::default();
        let shared = "net: &n {port: 7}\n";
        assert!(given.add_file(shared, "c.yaml").is_ok());
    }

    #[test]
    fn mongods_spellings_are_understood() {
        let given = words(&[
            "--dbpath=/x",
            "--port",
            "1",
            "--quiet",
            "-vvv",
            "--setParameter",
            "a=1",
            "--setParameter=b=2",
            "-f",
            "c.yaml",
        ])
        .unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(given.text("dbpath"), Some("/x"));
        assert_eq!(given.text("port"), Some("1"));
        assert!(given.flag("quiet") && !given.flag("ipv6"));
        assert_eq!(given.all("verbose").len(), 3);
        assert_eq!(given.all("setParameter"), ["a=1", "b=2"]);
        assert_eq!(given.text("config"), Some("c.yaml"));
    }

    #[test]
    fn unknown_and_refused_options_are_errors() {
        let message = |words_given: &[&str]| words(words_given).unwrap_err().message;
        assert!(message(&["--nope"]).contains("unrecognised option '--nope'\n"));
        assert!(message(&["--dbPath", "x"]).contains("did you mean '--dbpath'?"));
        assert!(message(&["--bindip", "x"]).contains("did you mean '--bind_ip'?"));
        assert!(message(&["word"]).contains("unexpected word"));
        assert!(message(&["--port", "x"]).contains("whole number"));
        assert!(message(&["--port", "1", "--port", "2"]).contains("more than once"));
        assert!(message(&["--transitionToAuth"]).contains("a set has one member"));
        assert!(message(&["--clusterAuthMode", "x509"]).contains("a set has one member"));
        assert!(words(&["--clusterAuthMode", "keyFile", "--keyFile", "k"]).is_ok());
        assert!(message(&["--sslMode", "requireSSL"]).contains("begin with --tls"));
        assert!(words(&["--sslMode", "disabled"]).is_ok());
        assert!(message(&["--setParameter", "x"]).contains("NAME=VALUE"));
        assert!(message(&["--auditSchema", "OCSF"]).contains("MongoDB's own schema"));
        assert!(words(&["--auditSchema", "mongo"]).is_ok());
        assert!(message(&["--enableEncryption"]).contains("encrypt the file system"));
        assert!(message(&["--encryptionKeyFile", "k"]).contains("encrypt the file system"));
        assert!(message(&["--ldapServers", "h"]).contains("SCRAM and certificates"));
        assert!(message(&["--fork"]).contains("service manager"));
    }

    #[test]
    fn a_file_supplies_options_that_the_command_line_omits() {
        let mut given = words(&["--port", "5", "--setParameter", "a=2"]).unwrap_or_default();
        let file = "net:\n  port: 6\n  bindIp: localhost\n  ipv6: false\nstorage:\n  dbPath: /d\n  journal:\n\
                    \x20   enabled: true\nsecurity:\n  authorization: disabled\nsetParameter:\n  a: 1\n  b: true\nsystemLog:\n";
        given.add_file(file, "f").unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(given.text("port"), Some("5"));
        assert_eq!(given.text("bind_ip"), Some("localhost"));
        assert_eq!(given.text("dbpath"), Some("/d"));
        assert!(!given.flag("ipv6"));
        assert_eq!(given.all("setParameter"), ["a=1", "b=true", "a=2"]);
    }

    #[test]
    fn a_file_with_unknown_keys_is_refused() {
        let message = |text: &str| Given::default().add_file(text, "f").unwrap_err().message;
        assert!(message("net:\n  prot: 1\n").contains("did you mean 'net.port'?"));
        assert!(message("nope: 1\n").contains("Unrecognized option: nope"));
        assert!(message("nope:\n").contains("Unrecognized option: nope"));
        assert!(message("net: 5\n").contains("Unrecognized option: net"));
        assert!(message("net:\n  port: [1]\n").contains("single value"));
        assert!(message("net:\n  ipv6: 3\n").contains("true or false"));
        assert!(message("security:\n  transitionToAuth: true\n").contains("one member"));
        assert!(message("a: [").contains("Error parsing f"));
    }
}
