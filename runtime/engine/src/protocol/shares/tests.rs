use super::*;

#[test]
fn chunks_cover_the_work_once_and_the_last_finisher_is_one() {
    let shares = Shares::new(1000, 300, 1);
    let mut covered = 0;
    let mut last = 0;
    while let Some(chunk) = shares.take() {
        assert_eq!(chunk.start, covered);
        covered = chunk.end;
        last += u32::from(shares.finish(chunk.end - chunk.start));
    }
    assert_eq!((covered, last), (1000, 1));
    assert!(shares.is_exhausted());
}

#[test]
fn the_last_reference_is_told() {
    let shares = Shares::new(1, 1, 2);
    shares.retain();
    assert!(!shares.release());
    assert!(!shares.release());
    assert!(shares.release());
}
