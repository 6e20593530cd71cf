"""What is measured: each experiment is one program beside this file, with what its paper saw and why ours differs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Experiment:
    """`better` is "less" or "more"; `sees` is what the paper saw, `differs` why ours does not look alike. `ranks` are
    the numbers of ranks within a node, `apart` those between two nodes, where further ranks wait beside a pair."""

    program: str
    title: str
    x: str
    y: str
    better: str
    sees: str
    differs: str = ""
    ranks: tuple = (2,)
    apart: tuple = ()
    spare: bool = False  # also with ranks that leave a CPU to dedicated workers
    asleep: bool = False  # ranks sleep in place of computing in any case
    categories: tuple = ()  # names of the values of x, where it is no quantity
    at: float | None = None  # the x of the findings, if it is not the largest one

    def places(self):
        """Where it runs."""
        return ["node", *(["nodes"] if self.apart else []), *(["spare"] if self.spare else [])]


ALL = (
    Experiment(
        "scenarios", "Receiver-side latency in three scenarios (PEF fig. 2, SmartInterrupts fig. 5)", "message, KiB",
        "latency, us", "less",
        "PEF adds nothing to blocking receives and to receives that find their message, and about 5 us to early ones; "
        "a thread that interrupts wake adds 10 to 20 us to all three. SmartInterrupts adds a few hundred nanoseconds.",
        "The sender interrupts, and only a rank that computes, so no scenario pays for a timer.", apart=(3,)),
    Experiment(
        "overlap", "Overlap at the receiver (SmartInterrupts fig. 6, PEF fig. 3c)", "message, KiB", "overlap, %",
        "more",
        "Close to 100 % from 64 KiB on with helpers, interrupts or PEF; none without. With more threads than cores "
        "polling threads lose.",
        "Where both ranks wait they copy a long message together; a computation takes one of the two CPUs away, and a "
        "wake-up takes as long as a message of 64 KiB. So less than 100 % can be had by this method. Where another MPI "
        "hides all, it hides a latency that is two to six times ours (`scenarios`).", apart=(3,)),
    Experiment(
        "delay", "Time left after a computation of 2 to 3.5 latencies (SmartInterrupts fig. 7, PEF fig. 3a, b)",
        "computation, latencies", "beyond the computation, us", "less",
        "Constant and small with progress, the whole transfer without.",
        "As in the papers: under `none` the transfer is left, 8 us of 1 MiB within a node, under `steal` a time that "
        "does not depend on the length. Helpers without a CPU of their own come late.", apart=(3,)),
    Experiment(
        "posting", "Posting and waiting (CasperII fig. 3)", "message, KiB", "time, us", "less",
        "Offloading makes posting a constant fraction of a microsecond, and a wait after enough computation short.",
        "Our ghosts and helpers sleep while there is nothing to do, and who posts pays for waking them; the paper's "
        "poll on a CPU of their own (`COHORT_WAIT=spin`). A wait is as short as the paper's.",
        apart=(3,), spare=True),
    Experiment(
        "rate", "Message rate (CasperII fig. 4)", "message, KiB", "messages per us", "more",
        "Offloading costs rate for short messages, since each crosses a queue, and nothing for long ones.", "",
        apart=(3,)),
    Experiment(
        "distribution", "Distribution of the overlap (CasperII figs. 5, 6)", "percentile of the messages",
        "hidden part of the latency, %", "more",
        "With ghosts nearly all messages are hidden wholly, without any progress none.",
        "A wait that finds its message takes a tenth of the latency, which is short here (2 to 3 us), and nobody can "
        "hide that tenth. Under `ghost` the latency is longer, so the same wait is a smaller part of it.",
        apart=(3,), spare=True, at=50),
    Experiment(
        "scaling", "Ranks per dedicated worker (SmartInterrupts fig. 8)", "ranks", "beyond the computation, us", "less",
        "One helper serves many ranks: the time grows slowly with their number.",
        "Ranks sleep in place of computing, since they outnumber the CPUs. How long they sleep does not count; what is "
        "left are wake-ups, one after the other on two CPUs.", ranks=(2, 4, 8), asleep=True),
    Experiment(
        "wavefront", "Blocking wavefront (PEF fig. 4)", "message, KiB", "time of 60 rows, ms", "less",
        "PEF leaves blocking programs alone; polling threads and interrupts for every message cost up to tens of "
        "percent.", "As in the paper: only threads that poll beside the ranks cost time."),
    Experiment(
        "onesided", "Epochs of windows (SmartInterrupts figs. 11, 12, 14)", "put, KiB", "time, us", "less",
        "Helpers add nothing to the duration of an epoch, and the time beyond the computation is the same for all "
        "lengths; without progress the transfer comes on top. Polling threads lose as soon as they outnumber the "
        "cores.",
        "All ranks begin a round at one moment, so no time is below 0. An MPI whose origin waits for a late target "
        "before it computes loses that delay, 50 us; ours opens the epoch at once and puts when the target has come. "
        "Every MPI waits for the holder of a lock, 100 us; ours then takes 20 us more for 1 MiB, which others hide.",
        ranks=(2, 3), apart=(4, 3)),
    Experiment(
        "stencil", "Five-point stencil, 4 ranks (Daps fig. 6)", "order of the matrix", "time of a step, us", "less",
        "Computation dominates. Threads and ghosts slow it down, and ghosts do not serve the vectors; stealing leaves "
        "it alone and shortens the exchange.",
        "Four ranks share two CPUs, so long steps wait for CPUs, not for messages.", ranks=(4,)),
    Experiment(
        "slowdown",
        "Slow-down of a computation without MPI calls (the memory of PEF fig. 5c is a test, progress_memory.c)",
        "", "slow-down, %", "less",
        "Timers that end after a few turns and sleeping threads cost nothing that can be measured; pollers cost their "
        "core.", "As in the papers: only threads cost something. No other MPI changes its policy while a program runs.",
        categories=("nothing under way", "a long receive left behind")),
)
