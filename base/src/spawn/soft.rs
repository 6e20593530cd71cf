//! How many processes are enough: the info key `soft` (MPI-5.0, 11.8.4).

/// A set of numbers, as a list of `A`, `A:B` and `A:B:STEP` with commas between them.
#[derive(Clone, Copy, Debug)]
pub struct Soft<'a>(&'a str);

impl<'a> Soft<'a> {
    /// Reads a value; `None` if it is no such list.
    #[must_use]
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let value = core::str::from_utf8(value).ok()?;
        value.split(',').all(|part| Range::read(part).is_some()).then_some(Self(value))
    }

    /// The largest of them from 0 to `limit`.
    #[must_use]
    pub fn most(&self, limit: u32) -> Option<u32> {
        self.ranges().filter_map(|range| range.most(limit)).max()
    }

    /// The smallest of them that is not below `from`.
    #[must_use]
    pub fn least(&self, from: u32) -> Option<u32> {
        self.ranges().filter_map(|range| range.least(from)).min()
    }

    fn ranges(&self) -> impl Iterator<Item = Range> + 'a {
        self.0.split(',').filter_map(Range::read)
    }
}

/// From the first number, by steps, to the last.
#[derive(Clone, Copy)]
struct Range {
    first: i64,
    last: i64,
    step: i64,
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.trim().parse::<i32>().ok().map(i64::from));
        let first = numbers.next()??;
        let last = numbers.next().unwrap_or(Some(first))?;
        let step = numbers.next().unwrap_or(Some(1))?;
        let leads_there = step != 0 && (first == last || (first < last) == (step > 0));
        if numbers.next().is_some() || !leads_there {
            return None;
        }
        let reached = first + (last - first) / step * step;
        Some(Self { first: first.min(reached), last: first.max(reached), step: step.abs() })
    }

    fn most(self, limit: u32) -> Option<u32> {
        let below = self.last.min(i64::from(limit)) - self.first;
        let number = (below >= 0).then(|| self.first + below / self.step * self.step);
        number.and_then(|number| u32::try_from(number).ok())
    }

    fn least(self, from: u32) -> Option<u32> {
        let steps = (i64::from(from) - self.first).max(0).unsigned_abs().div_ceil(self.step.unsigned_abs());
        let number = self.first + steps.cast_signed() * self.step;
        u32::try_from(number).ok().filter(|_| number <= self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soft(value: &str) -> Soft<'_> {
        Soft::read(value.as_bytes()).expect("a list")
    }

    #[test]
    fn the_largest_number_with_room_is_taken() {
        // The list of the standard's example, and what Fortran's triplets mean.
        assert_eq!(soft("1:10000:2").most(8), Some(7));
        assert_eq!(soft("10:2:-4").most(9), Some(6));
        assert_eq!(soft("2,8, 4:5").most(7), Some(5));
        assert_eq!(soft("-7:7:5").most(7), Some(3));
        assert_eq!(soft("-3:-1").most(7), None);
        assert_eq!(soft("5").most(4), None);
        assert_eq!(soft("0:2").most(0), Some(0));
        assert_eq!(soft("-2147483648:2147483647:3").most(u32::MAX), Some(2_147_483_647));
    }

    #[test]
    fn the_smallest_number_is_known() {
        assert_eq!(soft("7,3:9:2").least(0), Some(3));
        assert_eq!(soft("3:9:2").least(4), Some(5));
        assert_eq!(soft("10:2:-4").least(0), Some(2));
        assert_eq!(soft("-7:7:5").least(0), Some(3));
        assert_eq!(soft("0,4").least(1), Some(4));
        assert_eq!(soft("3:9:2").least(10), None);
        assert_eq!(soft("-3:-1").least(0), None);
    }

    #[test]
    fn what_is_no_list_is_known() {
        for wrong in ["", ",", "1,", "a", "1:2:0", "1:2:3:4", "3:1", "1:3:-1", "1:", "99999999999", "1.5"] {
            assert!(Soft::read(wrong.as_bytes()).is_none(), "{wrong}");
        }
        assert!(Soft::read(b"4:4:-2").is_some());
    }
}
