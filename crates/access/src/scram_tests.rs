//! The exchange with a client that is written here from the RFC: with the RFC's own numbers, and
//! with the messages that an attacker may send instead.

use super::*;

const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// Returns the client's last message in answer to the server's first one.
fn proof(mechanism: Mechanism, bare: &str, server_first: &str, password: &str) -> String {
    let field = |name: &str| {
        server_first.split(',').find_map(|part| part.strip_prefix(name)).unwrap().to_owned()
    };
    let salt = BASE64.decode(field("s=")).unwrap();
    let rounds = NonZeroU32::new(field("i=").parse().unwrap()).unwrap();
    let mut salted = vec![0; mechanism.hash_bytes()];
    pbkdf2::derive(mechanism.pbkdf2(), rounds, &salt, password.as_bytes(), &mut salted);
    let client_key = mechanism.sign(&salted, b"Client Key");
    let stored = digest::digest(mechanism.digest(), client_key.as_ref());
    let without_proof = format!("c=biws,r={}", field("r="));
    let signed = format!("{bare},{server_first},{without_proof}");
    let signature = mechanism.sign(stored.as_ref(), signed.as_bytes());
    let proof: Vec<u8> =
        client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, sign)| key ^ sign).collect();
    format!("{without_proof},p={}", BASE64.encode(proof))
}

fn begin(mechanism: Mechanism, password: &str) -> (Exchange, String) {
    let credential = Credential::new(mechanism, password, ITERATIONS).unwrap();
    let first = ClientFirst::parse(b"n,,n=alice,r=clientnonce").unwrap();
    assert_eq!(first.user, "alice");
    first.answer(mechanism, credential).unwrap()
}

fn code(result: Result<impl Sized>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[test]
fn the_examples_of_the_rfcs_are_reproduced() {
    // RFC 5802, section 5, and RFC 7677, section 3.
    let cases = [
        (
            Mechanism::Sha1,
            "fyko+d2lbbFgONRv9qkxdawL",
            "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j",
            "QSXCR+Q6sek8bf92",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            Mechanism::Sha256,
            "rOprNGfwEbeRWgbNEkqO",
            "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            "W22ZaJ0SNY7soEsUEjb6gQ==",
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ];
    for (mechanism, client, nonce, salt, last, answer) in cases {
        let salt_bytes = BASE64.decode(salt).unwrap();
        let mut salted = vec![0; mechanism.hash_bytes()];
        pbkdf2::derive(mechanism.pbkdf2(), ITERATIONS, &salt_bytes, b"pencil", &mut salted);
        let client_key = mechanism.sign(&salted, b"Client Key");
        let credential = Credential {
            iterations: 4096,
            salt: salt_bytes,
            stored_key: digest::digest(mechanism.digest(), client_key.as_ref()).as_ref().to_vec(),
            server_key: mechanism.sign(&salted, b"Server Key").as_ref().to_vec(),
        };
        let exchange = Exchange {
            mechanism,
            credential,
            nonce: nonce.to_owned(),
            header: "biws".to_owned(),
            signed: format!("n=user,r={client},r={nonce},s={salt},i=4096"),
        };
        assert_eq!(exchange.finish(last.as_bytes()).unwrap(), answer);
    }
}

#[test]
fn only_the_right_password_is_accepted() {
    for mechanism in Mechanism::ALL.iter().copied() {
        let (exchange, first) = begin(mechanism, "secret");
        let last = proof(mechanism, "n=alice,r=clientnonce", &first, "secret");
        assert!(exchange.finish(last.as_bytes()).unwrap().starts_with("v="));
        let (exchange, first) = begin(mechanism, "secret");
        let last = proof(mechanism, "n=alice,r=clientnonce", &first, "Secret");
        assert_eq!(code(exchange.finish(last.as_bytes())), Some(ErrorCode::AuthenticationFailed));
    }
}

#[test]
fn a_message_of_another_exchange_is_refused() {
    let (_, first) = begin(Mechanism::Sha256, "secret");
    let replayed = proof(Mechanism::Sha256, "n=alice,r=clientnonce", &first, "secret");
    let (exchange, _) = begin(Mechanism::Sha256, "secret");
    assert!(exchange.finish(replayed.as_bytes()).is_err());
}

#[test]
fn a_changed_iteration_count_or_header_is_refused() {
    let (exchange, first) = begin(Mechanism::Sha256, "secret");
    let lowered = first.replace("i=4096", "i=1");
    let last = proof(Mechanism::Sha256, "n=alice,r=clientnonce", &lowered, "secret");
    assert!(exchange.finish(last.as_bytes()).is_err());
    let (exchange, first) = begin(Mechanism::Sha256, "secret");
    let last = proof(Mechanism::Sha256, "n=alice,r=clientnonce", &first, "secret");
    assert!(exchange.finish(last.replace("c=biws", "c=eSws").as_bytes()).is_err());
}

#[test]
fn every_truncation_of_a_message_is_refused() {
    let whole = b"n,,n=alice,r=x";
    for length in 0..whole.len() {
        assert!(ClientFirst::parse(&whole[..length]).is_err());
    }
    let (_, first) = begin(Mechanism::Sha256, "secret");
    let last = proof(Mechanism::Sha256, "n=alice,r=clientnonce", &first, "secret");
    for length in 0..last.len() {
        let (exchange, _) = begin(Mechanism::Sha256, "secret");
        assert!(exchange.finish(&last.as_bytes()[..length]).is_err());
    }
}

#[test]
fn malformed_first_messages_are_refused() {
    for bad in [
        &b"p=tls-unique,,n=alice,r=x"[..],
        b"n,a=bob,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=al\0ice,r=x",
        b"n,,m=1,n=alice,r=x",
        b"n,,n=alice,r=",
        b"\xff\xfe",
        &[b'n'; MESSAGE_BYTES_MAX + 1],
    ] {
        assert_eq!(code(ClientFirst::parse(bad)), Some(ErrorCode::AuthenticationFailed));
    }
    assert_eq!(ClientFirst::parse(b"y,a=a=2Cb,n=a=2Cb,r=x").unwrap().user, "a,b");
}

#[test]
fn a_stored_credential_is_read_back() {
    let credential = Credential::new(Mechanism::Sha1, "secret", ITERATIONS).unwrap();
    let doc = quire_document::DocBuf::build(|out| credential.write(out));
    assert!(Credential::parse(Mechanism::Sha1, doc.as_doc()).unwrap() == credential);
    assert!(Credential::parse(Mechanism::Sha256, doc.as_doc()).is_err());
}

#[test]
fn a_decoy_depends_only_on_the_name_and_accepts_no_password() {
    let decoy = |name: &str| Credential::decoy(Mechanism::Sha256, b"key", name, ITERATIONS);
    assert!(decoy("test.bob") == decoy("test.bob"));
    assert!(decoy("test.bob").salt != decoy("test.eve").salt);
    let first = ClientFirst::parse(b"n,,n=bob,r=x").unwrap();
    let (exchange, answer) = first.answer(Mechanism::Sha256, decoy("test.bob")).unwrap();
    let last = proof(Mechanism::Sha256, "n=bob,r=x", &answer, "secret");
    assert!(exchange.finish(last.as_bytes()).is_err());
}

#[test]
fn sha_1_hashes_the_digest_of_user_and_password() {
    assert_eq!(digest_password("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200");
}

#[test]
fn both_sides_prove_themselves() {
    for mechanism in Mechanism::ALL.iter().copied() {
        let password = match mechanism {
            Mechanism::Sha1 => digest_password("a=b,c", "secret"),
            Mechanism::Sha256 => "secret".to_owned(),
        };
        let credential = Credential::new(mechanism, &password, ITERATIONS).unwrap();
        let login = ClientLogin::new(mechanism, "a=b,c", "secret").unwrap();
        let first = ClientFirst::parse(login.first().as_bytes()).unwrap();
        assert_eq!(first.user, "a=b,c");
        let (exchange, answer) = first.answer(mechanism, credential).unwrap();
        let (proof, last) = login.prove(answer.as_bytes()).unwrap();
        let verdict = exchange.finish(last.as_bytes()).unwrap();
        proof.check(verdict.as_bytes()).unwrap();
        assert!(proof.check(b"v=AAAA").is_err());
    }
}

#[test]
fn a_client_refuses_an_impostor() {
    let login = || ClientLogin::new(Mechanism::Sha256, "alice", "secret").unwrap();
    assert!(login().prove(b"r=other,s=AAAA,i=4096").is_err());
    let one = login();
    let weak = format!("r={}x,s=AAAA,i=1", one.nonce());
    assert!(one.prove(weak.as_bytes()).is_err());
}
