//! Which combinations of several choices are tried each time: few of them, such that each two values of two different
//! choices come together in one (pairwise cover). The others belong to the long list.

/// Whether each combination, in the order of nested loops with the last choice fastest, is one of the cover. `sizes`
/// says how many values each choice has.
pub fn pairwise(sizes: &[usize]) -> Vec<bool> {
    let all = combinations(sizes);
    let mut open: Vec<Pair> = all.iter().flat_map(|one| pairs(one)).collect();
    open.sort_unstable();
    open.dedup();
    let mut chosen = vec![false; all.len()];
    if open.is_empty() {
        // One choice, or none: nothing comes together.
        chosen.fill(true);
    }
    while !open.is_empty() {
        let gain = |one: &Vec<usize>| pairs(one).filter(|pair| open.contains(pair)).count();
        // The first of the best, so that each run of this program gives the same.
        let best = (0..all.len()).rev().max_by_key(|&index| gain(&all[index]));
        let Some(best) = best else { break };
        chosen[best] = true;
        let met: Vec<Pair> = pairs(&all[best]).collect();
        open.retain(|pair| !met.contains(pair));
    }
    chosen
}

/// Two choices with their values.
type Pair = [(usize, usize); 2];

fn pairs(one: &[usize]) -> impl Iterator<Item = Pair> {
    // A choice with one value is in every combination anyway, and pairs with it ask for each value of the others.
    let value = |choice| (choice, one[choice]);
    (0..one.len()).flat_map(move |first| (first + 1..one.len()).map(move |second| [value(first), value(second)]))
}

fn combinations(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &size in sizes {
        let longer = |one: Vec<usize>| {
            (0..size).map(move |value| {
                let mut longer = one.clone();
                longer.push(value);
                longer
            })
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// What this module promises, as a trial body.
pub fn check() -> Result<(), String> {
    for (sizes, least, most) in
        [(&[2, 2, 2, 1][..], 4, 5), (&[3, 3, 10, 1], 30, 33), (&[4, 2, 1, 1], 8, 8), (&[1, 1, 1, 1], 1, 1)]
    {
        let all = combinations(sizes);
        let cover = pairwise(sizes);
        let taken: Vec<_> = all.iter().zip(&cover).filter(|(_, taken)| **taken).collect();
        let met: Vec<Pair> = taken.iter().flat_map(|(one, _)| pairs(one)).collect();
        let lacks = all.iter().flat_map(|one| pairs(one)).find(|pair| !met.contains(pair));
        if let Some(pair) = lacks {
            return Err(format!("{sizes:?}: nothing has {pair:?}"));
        }
        if !(least..=most).contains(&taken.len()) {
            return Err(format!("{sizes:?}: {} of {}", taken.len(), all.len()));
        }
    }
    Ok(())
}
