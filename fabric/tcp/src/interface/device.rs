//! What the system says of a network device, asked in the way of `ethtool`: `/sys` may show the devices of another
//! network namespace.

use libc::{c_char, c_ulong};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// The kernel's numbers and records, of `linux/sockios.h` and `linux/ethtool.h`; a test compares them.
const SIOCETHTOOL: c_ulong = 0x8946;
const ETHTOOL_GSET: u32 = 1;
const ETHTOOL_GDRVINFO: u32 = 3;
const DRIVER_INFO: usize = 196;
const DRIVER: usize = 4;
const BUS: usize = 100;
const LINK: usize = 44;
const SPEED: usize = 12;
const SPEED_HIGH: usize = 28;

/// Bytes of a text in the records.
const TEXT: usize = 32;

/// Drivers of devices that stand for others, which may lead to other machines.
const STACKED: [&str; 5] = ["802.1Q VLAN Support", "bonding", "team", "macvlan", "ipvlan"];

/// A network device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// A bridge in software.
    pub is_bridge: bool,
    /// Hardware, or one that stands for it.
    pub is_physical: bool,
    /// Million bits per second, where the system knows.
    pub speed: Option<u32>,
}

impl Device {
    /// Looks at a device; what cannot be found out is false.
    pub fn of(name: &str) -> Self {
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else {
            return Self::default();
        };
        let info = ask::<DRIVER_INFO>(&socket, name, ETHTOOL_GDRVINFO);
        let info = info.unwrap_or([0; DRIVER_INFO]);
        let (driver, bus) = (text(&info[DRIVER..]), text(&info[BUS..]));
        Self {
            is_bridge: driver == "bridge",
            // The place of hardware has a number: 0000:01:00.0, virtio0, usb-0000:00:14.0-1.
            is_physical: bus.bytes().any(|byte| byte.is_ascii_digit()) || STACKED.contains(&driver),
            speed: ask::<LINK>(&socket, name, ETHTOOL_GSET).and_then(|link| speed(&link)),
        }
    }
}

/// The kernel's answer to a question about a device.
fn ask<const N: usize>(socket: &UdpSocket, name: &str, question: u32) -> Option<[u8; N]> {
    let mut record = [0; N];
    record[..4].copy_from_slice(&question.to_ne_bytes());
    // SAFETY: zeros are a valid record.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (place, byte) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *place = byte as c_char;
    }
    request.ifr_ifru.ifru_data = record.as_mut_ptr().cast();
    // SAFETY: the record has the length that belongs to the question.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    (result == 0).then_some(record)
}

fn text(bytes: &[u8]) -> &str {
    let bytes = &bytes[..TEXT];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(TEXT);
    std::str::from_utf8(&bytes[..end]).unwrap_or("")
}

fn speed(link: &[u8; LINK]) -> Option<u32> {
    let half = |at: usize| u32::from(u16::from_ne_bytes([link[at], link[at + 1]]));
    let speed = half(SPEED_HIGH) << 16 | half(SPEED);
    // Unknown speeds are -1, or that in 16 bits.
    (!matches!(speed, 0 | 0xffff | u32::MAX)).then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_are_those_of_the_kernels_headers() {
        let equal = [
            ("SIOCETHTOOL", SIOCETHTOOL as usize),
            ("ETHTOOL_GSET", ETHTOOL_GSET as usize),
            ("ETHTOOL_GDRVINFO", ETHTOOL_GDRVINFO as usize),
            ("sizeof(struct ethtool_drvinfo)", DRIVER_INFO),
            ("offsetof(struct ethtool_drvinfo, driver)", DRIVER),
            ("offsetof(struct ethtool_drvinfo, bus_info)", BUS),
            ("sizeof(struct ethtool_cmd)", LINK),
            ("offsetof(struct ethtool_cmd, speed)", SPEED),
            ("offsetof(struct ethtool_cmd, speed_hi)", SPEED_HIGH),
        ];
        let asserts: String =
            equal.iter().map(|(name, value)| format!("_Static_assert({name} == {value}, \"\");\n")).collect();
        let program = format!(
            "printf '%s' '#include <stddef.h>\n#include <linux/sockios.h>\n#include <linux/ethtool.h>\n{asserts}' \
             | cc -x c -fsyntax-only -"
        );
        let checked = std::process::Command::new("sh").args(["-c", &program]).status();
        assert!(checked.unwrap().success());
    }

    #[test]
    fn the_loopback_device_is_no_hardware() {
        let device = Device::of("lo");
        assert!(!device.is_physical && !device.is_bridge);
        assert_eq!(Device::of("a-name-that-no-device-has"), Device::default());
    }
}
