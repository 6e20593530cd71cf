//! Completion in shells, and the manual pages.

use super::SYSTEM;
use crate::command::{Ended, Program};
use crate::{Outcome, place};

fn shell(program: &str, script: &str) -> Result<Ended, String> {
    let built = place::built_file("pip-exec")?;
    let folder = built.parent().map(|folder| folder.display().to_string());
    let path = format!("{}:{SYSTEM}", folder.unwrap_or_default());
    let command = Program::new(program).clean(path).args(["-c", script]);
    command.run()?.expect_code(0)
}

/// bash and fish give the options, their values and the program's words; zsh reads its file.
pub fn completion() -> Outcome {
    let bash = "set -u; source <(pip-exec --completion bash); complete -p mpiexec
        try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _pip_exec; echo \"<${COMPREPLY[*]}>\"; }
        try mpiexec -n 4 --bind-; try mpiexec --bind-to so; try mpiexec -env A B --repo; try mpiexec -n 2 ./a --bind-
        try mpiexec -n 2 ./a : --bind-";
    let said = shell("bash", bash)?;
    let lines: Vec<&str> = said.stdout.lines().filter(|line| line.starts_with('<')).collect();
    if lines != ["<--bind-to>", "<socket>", "<--report-bindings>", "<>", "<--bind-to>"] {
        return Err(said.failure("bash completes otherwise"));
    }
    let fish = "pip-exec --completion fish | source; complete -C 'mpiexec --bind-t'; complete -C 'mpiexec -bind-to so'
        complete -C 'pip-exec --bind-to so'; complete -C 'pip-exec -outfile-p'";
    let said = shell("fish", fish)?;
    for words in ["--bind-to\t", "socket", "-outfile-pattern\t"] {
        if !said.stdout.contains(words) {
            return Err(said.failure(&format!("fish does not complete {words:?}")));
        }
    }
    // What completes needs a terminal; the file's syntax does not.
    shell("zsh", "pip-exec --completion zsh | zsh -fn /dev/stdin")?;
    Ok(())
}

/// man shows every page without a warning.
pub fn manual() -> Outcome {
    let said = shell("bash", "pip-exec --man | groff -man -Tascii -ww -P-cbou")?;
    for words in ["--bind-to", "COHORT_PROGRESS", "EXAMPLES"] {
        if !said.stdout.contains(words) {
            return Err(said.failure(&format!("the page has no {words}")));
        }
    }
    let page = place::root().join("tools/package/mpicc.1.in");
    let other = Program::new("groff").args(["-man", "-Tascii", "-ww"]);
    for page in [said, other.arg(page).run()?.expect_code(0)?] {
        if !page.stderr.is_empty() {
            return Err(page.failure("groff complains"));
        }
    }
    Ok(())
}
