//! The constants of the standard, read from `constants.table`.

/// One constant.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Group of constants that stand for each other's alternatives; `handle.X` for handles.
    pub family: String,
    /// C name without `MPI_`; that of an extension begins with `MPIX_`.
    pub name: String,
    /// What it is in each ABI.
    pub value: Value,
}

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Another name for an earlier constant.
    Alias(String),
    /// Its numbers.
    Numbers {
        /// In the MPI-5 ABI and in the runtime.
        mpi5: i64,
        /// In the MPICH ABI, if that has it.
        mpich: Option<i64>,
        /// In Open MPI's ABI, if that has it.
        openmpi: Option<OpenMpi>,
    },
}

/// What a constant is in Open MPI's ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenMpi {
    /// A number.
    Number(i64),
    /// Nothing of its own: programs get this constant.
    Like(String),
    /// The address of a variable.
    Variable {
        /// Its name.
        name: String,
        /// The handle in Fortran, -1 if it has none.
        fortran: i32,
    },
}

/// An ABI with numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The MPICH ABI.
    Mpich,
    /// Open MPI's ABI.
    OpenMpi,
}

impl Constant {
    /// The number in the MPI-5 ABI and that in another, if that has the constant and it is no alias.
    #[must_use]
    pub fn pair(&self, column: Column) -> Option<(i64, i64)> {
        match (column, &self.value) {
            (Column::Mpich, Value::Numbers { mpi5, mpich: Some(mpich), .. }) => Some((*mpi5, *mpich)),
            (Column::OpenMpi, Value::Numbers { mpi5, openmpi: Some(OpenMpi::Number(number)), .. }) => {
                Some((*mpi5, *number))
            }
            _ => None,
        }
    }

    /// The constant that programs get in an ABI that does not have this one.
    #[must_use]
    pub fn substitute(&self, column: Column) -> Option<&str> {
        match (column, &self.value) {
            (Column::OpenMpi, Value::Numbers { openmpi: Some(OpenMpi::Like(other)), .. }) => Some(other),
            _ => None,
        }
    }

    /// The variable of Open MPI's ABI whose address a handle is, and the handle in Fortran.
    #[must_use]
    pub fn variable(&self) -> Option<(&str, i32)> {
        match &self.value {
            Value::Numbers { openmpi: Some(OpenMpi::Variable { name, fortran }), .. } => Some((name, *fortran)),
            _ => None,
        }
    }

    /// The MPI-5 number, if it is no alias.
    #[must_use]
    pub fn mpi5(&self) -> Option<i64> {
        match self.value {
            Value::Numbers { mpi5, .. } => Some(mpi5),
            Value::Alias(_) => None,
        }
    }

    /// The kind of handle, `comm` or `datatype`, if it is one.
    #[must_use]
    pub fn handle(&self) -> Option<&str> {
        self.family.strip_prefix("handle.")
    }

    /// Whether the standard does not know the constant.
    #[must_use]
    pub fn is_extension(&self) -> bool {
        self.name.starts_with("MPIX_")
    }

    /// The name in C.
    #[must_use]
    pub fn c_name(&self) -> String {
        let prefix = if self.is_extension() { "" } else { "MPI_" };
        format!("{prefix}{}", self.name)
    }

    /// The name as a Rust constant: a digit in front is spelled out.
    #[must_use]
    pub fn rust_name(&self) -> String {
        rust_name(&self.name)
    }
}

/// `2INT` becomes `TWO_INT`; other names stay.
#[must_use]
pub fn rust_name(name: &str) -> String {
    name.strip_prefix('2').map_or_else(|| name.to_owned(), |rest| format!("TWO_{rest}"))
}

/// Reads the table.
///
/// # Errors
/// The line that is not understood.
pub fn read(table: &str) -> Result<Vec<Constant>, String> {
    crate::table_lines(table).map(|line| read_line(line).ok_or(format!("constants.table: {line}"))).collect()
}

fn read_line(line: &str) -> Option<Constant> {
    let mut words = line.split_whitespace();
    let (family, name, mpi5) = (words.next()?, words.next()?, words.next()?);
    let value = match mpi5.strip_prefix('=') {
        Some(other) => Value::Alias(other.to_owned()),
        None => {
            let mpich = words.next()?;
            let mpich = if mpich == "-" { None } else { Some(number(mpich)?) };
            let openmpi = match words.next()? {
                "-" => None,
                text => Some(openmpi(text)?),
            };
            Value::Numbers { mpi5: number(mpi5)?, mpich, openmpi }
        }
    };
    Some(Constant { family: family.to_owned(), name: name.to_owned(), value })
}

fn openmpi(text: &str) -> Option<OpenMpi> {
    if let Some(other) = text.strip_prefix('=') {
        return Some(OpenMpi::Like(other.to_owned()));
    }
    let Some((name, fortran)) = text.split_once(':') else {
        return number(text).map(OpenMpi::Number);
    };
    Some(OpenMpi::Variable { name: name.to_owned(), fortran: fortran.parse().ok()? })
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
