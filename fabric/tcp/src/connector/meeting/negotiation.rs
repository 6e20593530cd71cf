//! What is said on a connection until it is proven and taken.

use super::{Meeting, Step, TAKEN, Way};
use cohort_cipher::{Agreement, Cipher, PUBLIC, record_length};
use cohort_proof::Side;

impl Meeting {
    /// Moves it on as far as it goes.
    pub(super) fn go_on(&mut self, encrypts: bool) -> Step {
        loop {
            let output = self.handshake.output();
            if !output.is_empty() {
                match rustix::net::send(&self.socket, output, rustix::net::SendFlags::NOSIGNAL) {
                    Ok(sent) => {
                        self.is_established = true;
                        self.handshake.sent(sent);
                    }
                    Err(code) => return waits_or_over(code),
                }
                continue;
            }
            let wanted = self.handshake.wanted();
            if wanted == 0 {
                return self.proven(encrypts);
            }
            let mut bytes = [0; 256];
            let room = wanted.min(bytes.len());
            match rustix::io::read(&self.socket, &mut bytes[..room]) {
                Ok(0) => return Step::Over(libc::ECONNRESET),
                Ok(count) => {
                    if self.handshake.receive(&bytes[..count]).is_err() {
                        return Step::Over(libc::EPROTO);
                    }
                }
                Err(code) => return waits_or_over(code),
            }
        }
    }

    /// Nothing is left to prove.
    fn proven(&mut self, encrypts: bool) -> Step {
        if encrypts
            && self.cipher.is_none()
            && let Err(step) = self.agree()
        {
            return step;
        }
        let Some(proven) = self.handshake.proven() else {
            return Step::Over(libc::EPROTO);
        };
        match self.to {
            Some(way) => self.hear(way),
            None => Step::Asked((proven.purpose.lane, proven.purpose.from)),
        }
    }

    /// Agrees on keys with the other end; what to do until then.
    fn agree(&mut self) -> Result<(), Step> {
        let broken = || Step::Over(libc::EPROTO);
        if self.agreement.is_none() {
            let agreement = Agreement::begin().ok_or_else(broken)?;
            // So little fits into the buffer of a fresh connection.
            let flags = rustix::net::SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, agreement.public(), flags) {
                Ok(PUBLIC) => self.agreement = Some(agreement),
                Ok(_) => return Err(broken()),
                Err(code) => return Err(waits_or_over(code)),
            }
        }
        let mut bytes = [0; PUBLIC];
        let missing = PUBLIC - self.other_part.len();
        match rustix::io::read(&self.socket, &mut bytes[..missing]) {
            Ok(0) => return Err(Step::Over(libc::ECONNRESET)),
            Ok(count) => self.other_part.extend_from_slice(&bytes[..count]),
            Err(code) => return Err(waits_or_over(code)),
        }
        let Ok(other) = <[u8; PUBLIC]>::try_from(&self.other_part[..]) else {
            return Err(Step::Waits);
        };
        let side = match self.to {
            Some(_) => Side::Initiator,
            None => Side::Acceptor,
        };
        let own = self.agreement.take().ok_or_else(broken)?;
        let proven = self.handshake.proven().ok_or_else(broken)?;
        let keys = own.keys(&other, &proven.keys, side).ok_or_else(broken)?;
        self.cipher = Some(Box::new(Cipher::new(&keys, side)));
        Ok(())
    }

    /// Says the last word. False if the connection takes it no more.
    pub(super) fn say(&mut self, verdict: u8) -> bool {
        let verdict = [verdict];
        // So little fits into the buffer of a fresh connection.
        let is_written = |bytes: &[u8]| rustix::io::write(&self.socket, bytes) == Ok(bytes.len());
        let Some(cipher) = &mut self.cipher else {
            return is_written(&verdict);
        };
        cipher.sealer.seal(std::iter::once(&verdict[..]));
        let is_said = is_written(cipher.sealer.unsent());
        cipher.sealer.clear();
        is_said
    }

    /// Hears the other's last word.
    fn hear(&mut self, way: Way) -> Step {
        let length = match self.cipher {
            Some(_) => record_length(1),
            None => 1,
        };
        let mut bytes = [0; record_length(1)];
        let missing = length - self.verdict.len();
        match rustix::io::read(&self.socket, &mut bytes[..missing]) {
            Ok(0) => return Step::Over(libc::ECONNRESET),
            Ok(count) => self.verdict.extend_from_slice(&bytes[..count]),
            Err(code) => return waits_or_over(code),
        }
        if self.verdict.len() < length {
            return Step::Waits;
        }
        let is_genuine = match &mut self.cipher {
            Some(cipher) => cipher.opener.open(&mut self.verdict) == Ok(1),
            None => true,
        };
        match is_genuine {
            true => Step::Told(way, self.verdict[0] == TAKEN),
            false => Step::Over(libc::EPROTO),
        }
    }
}

fn waits_or_over(code: rustix::io::Errno) -> Step {
    use rustix::io::Errno;
    match code {
        Errno::AGAIN | Errno::INTR | Errno::NOTCONN => Step::Waits,
        code => Step::Over(code.raw_os_error()),
    }
}
