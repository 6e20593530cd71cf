//! Which transport a job uses: a provider of libfabric, or TCP without it.

use cohort_fabric_host::source::{Choice, Source, Wanted};
use cohort_fabric_ofi::{Fabric, Unavailable, is_sockets};
use cohort_fabric_tcp::NAME as DIRECT;
use cohort_fabric_tcp::interface::{Interface, Interfaces};
use std::net::IpAddr;

/// Chooses one: by default a fabric of the machine's own, else TCP.
///
/// # Errors
/// A text that names what there is and what to set.
pub fn choose(wanted: &Wanted) -> Result<Choice, String> {
    if wanted.encrypts {
        return encrypting(wanted.provider.as_deref(), || Interfaces::choose(wanted));
    }
    between(
        wanted.provider.as_deref(),
        || {
            let fabric = Fabric::choose(&with_interface(wanted), DIRECT)?;
            Ok(fabric.with_service(service_address(wanted)))
        },
        || Interfaces::choose(wanted),
    )
}

/// What is wanted, with our own choice of an interface for libfabric's providers over sockets: they take the fastest
/// one, which may be a bridge within the host.
fn with_interface(wanted: &Wanted) -> Wanted {
    let mut wanted = wanted.clone();
    let is_sockets = wanted.provider.as_deref().is_some_and(is_sockets);
    if is_sockets && wanted.interface.is_none() {
        let chosen = Interface::choose(&wanted).ok();
        wanted.interface = chosen.map(|interface| interface.address().to_string());
    }
    wanted
}

/// The one transport that encrypts.
fn encrypting<D: Source + 'static>(
    provider: Option<&str>,
    direct: impl FnOnce() -> Result<D, String>,
) -> Result<Choice, String> {
    match provider {
        None | Some(DIRECT) => Ok(Choice::only(direct()?)),
        Some(other) => Err(format!(
            "COHORT_NET_ENCRYPT=1 works over TCP without libfabric only, and COHORT_NET_PROVIDER asks for {other}, \
             which sends in clear text: set COHORT_NET_PROVIDER={DIRECT}, or leave COHORT_NET_ENCRYPT away"
        )),
    }
}

/// An address at which nodes ask each other whether they live, where messages take another way: of the interface that
/// was asked for, if it has one.
fn service_address(wanted: &Wanted) -> Option<IpAddr> {
    let any = Wanted { interface: None, ..wanted.clone() };
    let chosen = Interface::choose(wanted).or_else(|_none| Interface::choose(&any));
    chosen.ok().map(|interface| interface.address())
}

/// Chooses between the two transports. What exists and does not work is passed on, to be reported.
fn between<F: Source + 'static, D: Source + 'static>(
    provider: Option<&str>,
    fabric: impl FnOnce() -> Result<F, Unavailable>,
    direct: impl FnOnce() -> Result<D, String>,
) -> Result<Choice, String> {
    match provider {
        Some(DIRECT) => Ok(Choice::only(direct()?)),
        Some(_) => Ok(Choice::only(fabric()?)),
        None => match fabric() {
            Ok(fabric) => Ok(Choice {
                fallback: match direct() {
                    Ok(direct) => Some(Box::new(direct)),
                    // The interface that was asked for is none that TCP knows.
                    Err(_none) => None,
                },
                ..Choice::only(fabric)
            }),
            Err(Unavailable::Absent(_)) => Ok(Choice::only(direct()?)),
            Err(Unavailable::Broken(failure)) => Ok(Choice { failure: Some(failure), ..Choice::only(direct()?) }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Result<Interfaces, String> {
        Interfaces::choose(&Wanted { interface: Some("127.0.0.1".into()), ..Wanted::default() })
    }

    fn none(reason: fn(String) -> Unavailable) -> Result<Interfaces, Unavailable> {
        Err(reason("verbs does not work".into()))
    }

    #[test]
    fn by_default_a_broken_fabric_is_passed_over_and_reported() {
        let choice = between(None, || none(Unavailable::Broken), loopback).unwrap();
        assert_eq!(choice.source.name(), DIRECT);
        assert_eq!(choice.failure.as_deref(), Some("verbs does not work"));
        let silent = between(None, || none(Unavailable::Absent), loopback).unwrap();
        assert_eq!(silent.failure, None);
        let open = between(None, || Ok(loopback().unwrap()), loopback).unwrap();
        assert!(open.fallback.is_some() && open.failure.is_none());
    }

    #[test]
    fn who_encrypts_takes_the_transport_that_can() {
        for provider in [None, Some(DIRECT)] {
            let choice = encrypting(provider, loopback).unwrap();
            assert_eq!(choice.source.name(), DIRECT);
        }
        let refused = encrypting(Some("verbs"), loopback).unwrap_err();
        assert!(refused.contains("verbs") && refused.contains("COHORT_NET_PROVIDER=direct"), "{refused}");
    }

    #[test]
    fn what_is_asked_for_is_taken_or_refused() {
        let refused = between(Some("verbs"), || none(Unavailable::Broken), loopback);
        assert_eq!(refused.unwrap_err(), "verbs does not work");
        let chosen = between(Some("verbs"), || Ok(loopback().unwrap()), loopback).unwrap();
        assert!(chosen.fallback.is_none());
        let direct = between(Some(DIRECT), || none(Unavailable::Broken), loopback).unwrap();
        assert_eq!((direct.source.name(), direct.failure), (DIRECT, None));
    }
}
