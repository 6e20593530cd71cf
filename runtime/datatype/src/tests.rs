//! Random nested types against a naive reference: the list of (displacement, basic) pairs.

mod examples;
mod places;

use super::*;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

const FORM: Form = Form { counts: CountForm::Int, bounds: BoundsRule::Standard };

const MPICH: Form = Form { bounds: BoundsRule::Mpich, ..FORM };

/// How to make a type.
#[derive(Clone, Debug)]
enum Recipe {
    Basic(u32),
    Contiguous(i64, Box<Recipe>),
    Vector(i64, i64, i64, Box<Recipe>),
    Hvector(i64, i64, i64, Box<Recipe>),
    Indexed(Vec<(i64, i64)>, Box<Recipe>),
    Hindexed(Vec<(i64, i64)>, Box<Recipe>),
    Block(i64, Vec<i64>, Box<Recipe>),
    Struct(Vec<(i64, i64, Recipe)>),
    Subarray(Vec<(i64, i64, i64)>, bool, Box<Recipe>),
    Resized(i64, i64, Box<Recipe>),
    Dup(Box<Recipe>),
}

/// The type map itself.
#[derive(Clone, Debug)]
struct Naive {
    entries: Vec<(i64, Basic)>,
    lb: i64,
    ub: i64,
    alignment: i64,
    /// The outermost markers, for types of the standard's rule.
    markers: [Option<i64>; 2],
}

impl Naive {
    fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// Copies of members at displacements, one by one.
    fn of(copies: &[(i64, &Naive)], pad: bool) -> Naive {
        let has_bounds = |member: &Naive| member.markers[0].is_some() || member.extent() != 0;
        let copies: Vec<_> =
            copies.iter().filter(|(_, member)| has_bounds(member) || !member.entries.is_empty()).collect();
        let marked = |which: usize| copies.iter().filter_map(move |(disp, it)| Some(disp + it.markers[which]?));
        let markers = [marked(0).min(), marked(1).max()];
        let lb = copies.iter().map(|(disp, member)| disp + member.lb).min().unwrap_or(0);
        let lb = markers[0].unwrap_or(lb);
        let mut ub = copies.iter().map(|(disp, member)| disp + member.ub).max().unwrap_or(0);
        let alignment = copies.iter().map(|(_, member)| member.alignment).max().unwrap_or(1);
        if pad {
            while (ub - lb) % alignment != 0 {
                ub += 1;
            }
        }
        let ub = markers[1].unwrap_or(ub);
        let entries = copies
            .iter()
            .flat_map(|(disp, member)| member.entries.iter().map(move |(at, b)| (disp + at, *b)))
            .collect();
        Naive { entries, lb, ub, alignment, markers }
    }

    fn blocks(&self, list: impl Iterator<Item = (i64, i64)>, form: Form) -> Naive {
        let copies: Vec<_> = list
            .flat_map(|(length, disp)| (0..length).map(move |k| (disp, k)))
            .map(|(disp, k)| (disp + k * self.extent(), self))
            .collect();
        Naive::of(&copies, form == FORM)
    }

    /// The displacement of every byte of the packed stream of `count` elements.
    fn bytes(&self, count: u64) -> Vec<i64> {
        let mut list = Vec::new();
        for element in 0..count as i64 {
            for &(disp, basic) in &self.entries {
                let at = disp + element * self.extent();
                match basic {
                    Basic::ShortInt => list.extend([0, 1, 4, 5, 6, 7].map(|byte| at + byte)),
                    _ => list.extend((0..basic.size()).map(|byte| at + byte)),
                }
            }
        }
        list
    }
}

fn naive_subarray(dims: &[(i64, i64, i64)], fortran: bool, old: &Naive, form: Form) -> Naive {
    let mut order: Vec<_> = dims.to_vec();
    if !fortran {
        order.reverse();
    }
    let (mut starts, mut stride) = (vec![0], old.extent());
    for (size, length, start) in order {
        starts = (0..length).flat_map(|k| starts.iter().map(move |at| at + (start + k) * stride)).collect();
        stride *= size;
    }
    let copies: Vec<_> = starts.iter().map(|&disp| (disp, old)).collect();
    let markers = markers(0, stride, form);
    Naive { lb: 0, ub: stride, markers, ..Naive::of(&copies, false) }
}

/// The markers of bounds that are set.
fn markers(lb: i64, ub: i64, form: Form) -> [Option<i64>; 2] {
    [lb, ub].map(|bound| (form == FORM).then_some(bound))
}

fn build(recipe: &Recipe) -> (TypeRef, Naive) {
    build_by(recipe, FORM)
}

fn build_by(recipe: &Recipe, form: Form) -> (TypeRef, Naive) {
    match recipe {
        Recipe::Basic(handle) => {
            let datatype = predefined(*handle).expect("a predefined handle");
            let basic = datatype.basic().expect("a basic class");
            let (ub, alignment) = (basic.extent(), basic.alignment());
            let naive = Naive { entries: vec![(0, basic)], lb: 0, ub, alignment, markers: [None; 2] };
            (datatype, naive)
        }
        Recipe::Contiguous(count, old) => {
            let (old, naive) = build_by(old, form);
            let made = contiguous(*count, &old, form).expect("small");
            (made, naive.blocks([(*count, 0)].into_iter(), form))
        }
        Recipe::Vector(count, length, stride, old) => {
            let (old, naive) = build_by(old, form);
            let made = vector(*count, *length, *stride, &old, form).expect("small");
            let step = stride * naive.extent();
            (made, naive.blocks((0..*count).map(|k| (*length, k * step)), form))
        }
        Recipe::Hvector(count, length, stride, old) => {
            let (old, naive) = build_by(old, form);
            let made = hvector(*count, *length, *stride, &old, form).expect("small");
            (made, naive.blocks((0..*count).map(|k| (*length, k * stride)), form))
        }
        Recipe::Indexed(list, old) => {
            let (old, naive) = build_by(old, form);
            let (lengths, disps): (Vec<_>, Vec<_>) = list.iter().copied().unzip();
            let made = indexed(&lengths, &disps, &old, form).expect("small");
            let extent = naive.extent();
            (made, naive.blocks(list.iter().map(|(length, disp)| (*length, disp * extent)), form))
        }
        Recipe::Hindexed(list, old) => {
            let (old, naive) = build_by(old, form);
            let (lengths, disps): (Vec<_>, Vec<_>) = list.iter().copied().unzip();
            let made = hindexed(&lengths, &disps, &old, form).expect("small");
            (made, naive.blocks(list.iter().copied(), form))
        }
        Recipe::Block(length, disps, old) => {
            let (old, naive) = build_by(old, form);
            let made = indexed_block(*length, disps, &old, form).expect("small");
            let extent = naive.extent();
            (made, naive.blocks(disps.iter().map(|disp| (*length, disp * extent)), form))
        }
        Recipe::Struct(members) => build_struct(members, form),
        Recipe::Subarray(dims, fortran, old) => {
            let (old, naive) = build_by(old, form);
            let column = |pick: fn(&(i64, i64, i64)) -> i64| dims.iter().map(pick).collect::<Vec<_>>();
            let order = if *fortran { ArrayOrder::Fortran } else { ArrayOrder::C };
            let (sizes, lengths, starts) = (column(|dim| dim.0), column(|dim| dim.1), column(|dim| dim.2));
            let made = subarray(&sizes, &lengths, &starts, order, &old, form).expect("small");
            (made, naive_subarray(dims, *fortran, &naive, form))
        }
        Recipe::Resized(lb, extent, old) => {
            let (old, naive) = build_by(old, form);
            let made = resized(&old, *lb, *extent, form).expect("small");
            let markers = markers(*lb, lb + extent, form);
            (made, Naive { lb: *lb, ub: lb + extent, markers, ..naive })
        }
        Recipe::Dup(old) => {
            let (old, naive) = build_by(old, form);
            (dup(&old), naive)
        }
    }
}

fn build_struct(members: &[(i64, i64, Recipe)], form: Form) -> (TypeRef, Naive) {
    let built: Vec<_> = members.iter().map(|(_, _, member)| build_by(member, form)).collect();
    let lengths: Vec<_> = members.iter().map(|member| member.0).collect();
    let disps: Vec<_> = members.iter().map(|member| member.1).collect();
    let types: Vec<_> = built.iter().map(|(datatype, _)| datatype.clone()).collect();
    let mut copies = Vec::new();
    for ((length, disp, _), (_, naive)) in members.iter().zip(&built) {
        copies.extend((0..*length).map(|k| (disp + k * naive.extent(), naive)));
    }
    (struct_(&lengths, &disps, &types, form).expect("small"), Naive::of(&copies, true))
}

fn recipes() -> impl Strategy<Value = Recipe> {
    // char, short, int, double, complex double, long double + int, short + int
    let handles = [0x243, 0x208, 0x209, 0x214, 0x216, 0x22d, 0x22c];
    let leaf = prop::sample::select(handles.to_vec()).prop_map(Recipe::Basic);
    leaf.prop_recursive(4, 12, 3, |inner| {
        let pairs = prop::collection::vec((0..4_i64, -6..12_i64), 0..20);
        let byte_pairs = prop::collection::vec((0..4_i64, -60..200_i64), 0..20);
        let members = prop::collection::vec((0..3_i64, -40..100_i64, inner.clone()), 0..4);
        let dimension = (1..5_i64, 1..5_i64, 0..4_i64)
            .prop_map(|(length, spare, start)| (length + spare, length, start.min(spare)));
        let dims = prop::collection::vec(dimension, 1..4);
        let boxed = inner.prop_map(Box::new).boxed();
        prop_oneof![
            (0..6_i64, boxed.clone()).prop_map(|(n, old)| Recipe::Contiguous(n, old)),
            (0..6_i64, 0..4_i64, -5..8_i64, boxed.clone())
                .prop_map(|(n, length, stride, old)| Recipe::Vector(n, length, stride, old)),
            (0..6_i64, 0..4_i64, -50..90_i64, boxed.clone())
                .prop_map(|(n, length, stride, old)| Recipe::Hvector(n, length, stride, old)),
            (pairs, boxed.clone()).prop_map(|(list, old)| Recipe::Indexed(list, old)),
            (byte_pairs, boxed.clone()).prop_map(|(list, old)| Recipe::Hindexed(list, old)),
            (0..4_i64, prop::collection::vec(-6..12_i64, 0..20), boxed.clone())
                .prop_map(|(length, list, old)| Recipe::Block(length, list, old)),
            members.prop_map(Recipe::Struct),
            (dims, any::<bool>(), boxed.clone()).prop_map(|(dims, fortran, old)| Recipe::Subarray(dims, fortran, old)),
            (-30..30_i64, 0..200_i64, boxed.clone()).prop_map(|(lb, extent, old)| Recipe::Resized(lb, extent, old)),
            boxed.prop_map(Recipe::Dup),
        ]
    })
    .prop_filter("not too large", |recipe| build(recipe).1.entries.len() < 3000)
}

/// Memory that holds every byte a layout touches.
struct Memory {
    bytes: Vec<u8>,
    origin: i64,
}

impl Memory {
    fn around(touched: &[i64], fill: impl Fn(usize) -> u8) -> Self {
        let low = touched.iter().copied().min().unwrap_or(0);
        let high = touched.iter().copied().max().unwrap_or(0);
        let bytes = (0..(high - low + 1) as usize).map(fill).collect();
        Self { bytes, origin: low }
    }

    /// The buffer address for which displacement `origin` is the first byte.
    fn base(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_offset(-self.origin as isize)
    }

    fn at(&self, disp: i64) -> u8 {
        self.bytes[(disp - self.origin) as usize]
    }

    fn set(&mut self, disp: i64, value: u8) {
        self.bytes[(disp - self.origin) as usize] = value;
    }
}

fn noise(index: usize) -> u8 {
    (index.wrapping_mul(2_654_435_761) >> 11) as u8
}

/// Two fractions of a length as a range.
fn range(length: usize, from: f64, to: f64) -> (u64, u64) {
    let (from, to) = ((length as f64 * from) as u64, (length as f64 * to) as u64);
    (from.min(to), from.max(to))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_and_signature_match_the_type_map(recipe in recipes(), as_mpich in any::<bool>()) {
        let (made, naive) = build_by(&recipe, if as_mpich { MPICH } else { FORM });
        let touched = naive.bytes(1);
        prop_assert_eq!(made.size(), touched.len() as i64);
        prop_assert_eq!((made.lb(), made.ub()), (naive.lb, naive.ub));
        let true_lb = touched.iter().copied().min().unwrap_or(0);
        let true_ub = touched.iter().copied().max().map_or(0, |last| last + 1);
        prop_assert_eq!((made.true_lb(), made.true_extent()), (true_lb, true_ub - true_lb));
        let mut basics = Vec::new();
        made.signature().for_each_run(&mut |basic, count| basics.extend((0..count).map(|_| basic)));
        let expected: Vec<_> = naive.entries.iter().map(|(_, basic)| *basic).collect();
        prop_assert_eq!(basics, expected);
        if made.is_dense() {
            prop_assert!(naive.bytes(3).iter().copied().eq(0..3 * made.size()));
        }
    }

    #[test]
    fn pack_and_unpack_any_range(
        recipe in recipes(), count in 0..40_u64, from in 0.0..=1.0, to in 0.0..=1.0,
    ) {
        let (made, naive) = build(&recipe);
        let touched = naive.bytes(count);
        let (from, to) = range(touched.len(), from, to);
        let wanted = &touched[from as usize..to as usize];
        let mut memory = Memory::around(&touched, noise);
        // SAFETY: the test's own memory, which stays until the operation is over.
        let layout = unsafe { Buffer::new(memory.base(), count, &made) };
        prop_assert_eq!(layout.bytes(), touched.len() as u64);

        let mut packed = vec![0; wanted.len()];
        // SAFETY: the memory holds all bytes of the layout.
        let done = unsafe { pack(layout, from, packed.as_mut_ptr(), to - from) };
        prop_assert_eq!(done, to - from);
        let expected: Vec<_> = wanted.iter().map(|&disp| memory.at(disp)).collect();
        prop_assert_eq!(&packed, &expected);

        let stream: Vec<_> = (0..wanted.len()).map(|index| noise(index + 77)).collect();
        let mut reference = Memory::around(&touched, noise);
        for (&disp, &byte) in wanted.iter().zip(&stream) {
            reference.set(disp, byte);
        }
        // SAFETY: as above.
        let done = unsafe { unpack(layout, from, stream.as_ptr(), to - from) };
        prop_assert_eq!(done, to - from);
        prop_assert_eq!(&memory.bytes, &reference.bytes);
    }

    #[test]
    fn copy_between_any_two_layouts(
        source in recipes(), destination in recipes(),
        counts in (0..20_u64, 0..20_u64), from in 0.0..=1.0, to in 0.0..=1.0,
    ) {
        let ((source, source_map), (destination, destination_map)) =
            (build(&source), build(&destination));
        let (read, written) = (source_map.bytes(counts.0), destination_map.bytes(counts.1));
        let (from, to) = range(read.len().min(written.len()), from, to);
        let mut source_memory = Memory::around(&read, noise);
        let mut memory = Memory::around(&written, |_| 0);
        let mut reference = Memory::around(&written, |_| 0);
        for index in from as usize..to as usize {
            reference.set(written[index], source_memory.at(read[index]));
        }
        // SAFETY: the test's own memory, which stays until the operation is over.
        let source = unsafe { Buffer::new(source_memory.base(), counts.0, &source) };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let destination = unsafe { Buffer::new(memory.base(), counts.1, &destination) };
        let done = copy(destination, source, from, to);
        prop_assert_eq!(done, to - from);
        prop_assert_eq!(memory.bytes, reference.bytes);
    }

    #[test]
    fn elements_in_a_part_of_a_stream(recipe in recipes(), bytes in 0..400_i64) {
        let (made, naive) = build(&recipe);
        prop_assume!(made.size() > 0);
        let mut ends = vec![0];
        while *ends.last().expect("never empty") < bytes {
            for (_, basic) in &naive.entries {
                let (first, second) = basic.pair().unwrap_or((*basic, *basic));
                ends.push(ends.last().expect("never empty") + first.size());
                if basic.pair().is_some() {
                    ends.push(ends.last().expect("never empty") + second.size());
                }
            }
        }
        let expected = ends.iter().position(|&end| end == bytes).map(|index| index as i64);
        prop_assert_eq!(made.elements_in(bytes), expected);
    }
}

/// Long runs arrive whole, and nothing beside them, wherever source and destination begin in their pages.
#[test]
fn long_runs() {
    const BYTES: usize = 20_000;
    const ROOM: usize = BYTES + 8192;
    let input: Vec<u8> = (0..ROOM).map(|at| (at * 31 % 251) as u8).collect();
    for (from, to) in [(0, 0), (0, 1), (5, 0), (63, 64), (100, 4001), (4090, 4095)] {
        let mut room = std::vec![0xee_u8; ROOM];
        // SAFETY: the test's own memory, which stays until the operation is over.
        let source = unsafe { Buffer::of_bytes(input[from..].as_ptr().cast_mut(), BYTES as u64) };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let destination = unsafe { Buffer::of_bytes(room[to..].as_mut_ptr(), BYTES as u64) };
        copy(destination, source, 0, BYTES as u64);
        assert!(room[to..to + BYTES] == input[from..from + BYTES]);
        assert!(room[..to].iter().chain(&room[to + BYTES..]).all(|&byte| byte == 0xee));
    }
}
