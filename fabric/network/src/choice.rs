//! Which transport a job uses: a provider of libfabric, or TCP without it.

use cohort_fabric_host::boot::Chosen;
use cohort_fabric_ofi::Fabric;
use cohort_fabric_tcp::interface::Interface;

/// Chooses one: by default a fabric of the machine's own, else TCP. `provider` and `interface` are the user's words.
///
/// # Errors
/// A text that names what there is and what to set.
pub fn choose(provider: Option<&str>, interface: Option<&str>) -> Result<Chosen, String> {
    let fabric = || Fabric::choose(provider, interface, cohort_fabric_tcp::NAME);
    let direct = || -> Result<Chosen, String> { Ok(Box::new(Interface::choose(interface)?)) };
    match provider {
        Some(cohort_fabric_tcp::NAME) => direct(),
        Some(_) => Ok(Box::new(fabric()?)),
        None => match fabric() {
            Ok(fabric) => Ok(Box::new(fabric)),
            Err(_none) => direct(),
        },
    }
}
