//! What begins the lines of a rank (`--label` and its like), and what patterns of file names mean.

use super::options::Output;

/// Which of the root's streams a rank's output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// What begins each line of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Text, and the time between two parts of it.
    parts: Vec<Vec<u8>>,
}

impl Prefix {
    /// From the options: `facts` are a rank and its host.
    pub fn new(output: &Output, facts: &Facts<'_>, stream: Stream) -> Self {
        const TIME: &str = "\0";
        let name = match stream {
            Stream::Output => "stdout",
            Stream::Error => "stderr",
        };
        let mut text = match &output.pattern {
            Some(pattern) => facts.expand(pattern),
            None if output.label => format!("[{}] ", facts.rank),
            None => String::new(),
        };
        if output.timestamp {
            text.push_str(TIME);
        }
        if output.tag {
            text.push_str(&format!("[1,{}]", facts.rank));
        }
        if output.tag || output.timestamp {
            text.push_str(&format!("<{name}>:"));
        }
        match text.is_empty() {
            true => Self::default(),
            false => Self { parts: text.split(TIME).map(|part| part.as_bytes().to_vec()).collect() },
        }
    }

    /// Whether lines stay as they are.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Puts it before each of the lines, of which the last one ends too.
    pub fn put_before(&self, lines: Vec<u8>) -> Vec<u8> {
        if self.is_empty() {
            return lines;
        }
        let label = self.text();
        let mut text = Vec::with_capacity(lines.len() + label.len());
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            text.extend_from_slice(&label);
            text.extend_from_slice(line);
        }
        text
    }

    fn text(&self) -> Vec<u8> {
        match self.parts.as_slice() {
            [one] => one.clone(),
            parts => parts.join(now().as_bytes()),
        }
    }
}

/// What patterns may name.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The rank in the job.
    pub rank: u32,
    /// Its node.
    pub node: u32,
    /// The node's host.
    pub host: &'a str,
}

impl Facts<'_> {
    /// Puts them in place of `%r`, `%p` and `%h`.
    pub fn expand(&self, pattern: &str) -> String {
        let mut text = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            match (letter, letters.as_str().chars().next()) {
                ('%', Some('r')) => text.push_str(&self.rank.to_string()),
                ('%', Some('p')) => text.push_str(&self.node.to_string()),
                ('%', Some('h')) => text.push_str(self.host),
                // There is one group of processes.
                ('%', Some('g')) => text.push('0'),
                ('%', Some('%')) => text.push('%'),
                _ => {
                    text.push(letter);
                    continue;
                }
            }
            letters.next();
        }
        text
    }
}

/// The local time as `date` writes it.
fn now() -> String {
    // SAFETY: `time` takes NULL, `localtime_r` valid places; zeros are a valid `tm`.
    let time = unsafe {
        let seconds = libc::time(std::ptr::null_mut());
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    let mut text = [0_u8; 64];
    // SAFETY: the length is that of the place, the format ends with NUL, and `time` is complete.
    let length = unsafe {
        let format = c"%a %b %e %H:%M:%S %Y".as_ptr();
        libc::strftime(text.as_mut_ptr().cast(), text.len(), format, &raw const time)
    };
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(output: &Output, rank: u32) -> Prefix {
        let (node, host) = (2, "here");
        Prefix::new(output, &Facts { rank, node, host }, Stream::Output)
    }

    #[test]
    fn every_line_gets_its_label() {
        let output = Output { label: true, ..Output::default() };
        let label = prefix(&output, 3);
        let lines = label.put_before(b"a\n\nb\n".to_vec());
        assert_eq!(lines, b"[3] a\n[3] \n[3] b\n");
    }

    #[test]
    fn lines_begin_as_other_launchers_have_it() {
        let mut output = Output { tag: true, ..Output::default() };
        assert_eq!(prefix(&output, 7).text(), b"[1,7]<stdout>:");
        output.timestamp = true;
        let text = String::from_utf8(prefix(&output, 7).text()).expect("plain");
        assert!(text.ends_with("[1,7]<stdout>:") && text.contains(':') && text.len() > 30, "{text}");
        let pattern = Output { pattern: Some("%r of %h, %p%%x: ".into()), ..Output::default() };
        assert_eq!(prefix(&pattern, 7).text(), b"7 of here, 2%x: ");
        assert!(prefix(&Output::default(), 1).is_empty());
    }
}
