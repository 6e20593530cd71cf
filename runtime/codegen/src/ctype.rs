//! C types of parameters, and how C and Rust write them.

/// What a parameter is made of, before pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// `void`.
    Void,
    /// `char`.
    Char,
    /// `int`, and the enumeration types of the tool interface, by their C name.
    Int(String),
    /// `double`.
    Double,
    /// `MPI_Aint`.
    Aint,
    /// `MPI_Offset`.
    Offset,
    /// `MPI_Count`.
    Count,
    /// `MPI_Fint`.
    Fint,
    /// `MPI_Status` or `MPI_F08_status`, by its C name.
    Status(String),
    /// A handle whose representation the ABI chooses: `Comm`, `Datatype`, …
    Handle(String),
    /// A handle of the tool interface, a pointer in every ABI, by its C name.
    Tool(String),
    /// A user's function.
    Callback {
        /// Name of the small form, as in C.
        name: String,
        /// Whether the type depends on the kind of counts.
        poly: bool,
        /// Whether this is the `_c` form.
        large: bool,
    },
    /// `...`.
    Varargs,
}

/// The kinds of handles.
pub const HANDLES: &[&str] =
    &["Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Session", "Win"];

impl Base {
    /// Reads a C type name; `None` if it is not one of the interface's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "void" => Self::Void,
            "char" => Self::Char,
            "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => Self::Int(name.to_owned()),
            "double" => Self::Double,
            "MPI_Aint" => Self::Aint,
            "MPI_Offset" => Self::Offset,
            "MPI_Count" => Self::Count,
            "MPI_Fint" => Self::Fint,
            "MPI_Status" | "MPI_F08_status" => Self::Status(name.to_owned()),
            "..." => Self::Varargs,
            _ => {
                let short = name.strip_prefix("MPI_")?;
                if HANDLES.contains(&short) {
                    Self::Handle(short.to_owned())
                } else if short.ends_with("_function") {
                    Self::Callback { name: name.to_owned(), poly: false, large: false }
                } else if short.starts_with("T_") {
                    Self::Tool(name.to_owned())
                } else {
                    return None;
                }
            }
        })
    }

    /// The name in C.
    #[must_use]
    pub fn c(&self) -> String {
        match self {
            Self::Void => "void".into(),
            Self::Char => "char".into(),
            Self::Double => "double".into(),
            Self::Aint => "MPI_Aint".into(),
            Self::Offset => "MPI_Offset".into(),
            Self::Count => "MPI_Count".into(),
            Self::Fint => "MPI_Fint".into(),
            Self::Int(name) | Self::Status(name) | Self::Tool(name) => name.clone(),
            Self::Handle(name) => format!("MPI_{name}"),
            Self::Callback { name, large, .. } => {
                format!("{name}{}", if *large { "_c" } else { "" })
            }
            Self::Varargs => "...".into(),
        }
    }

    /// The type in Rust, with `A` for the ABI.
    #[must_use]
    pub fn rust(&self) -> String {
        match self {
            Self::Void => "c_void".into(),
            Self::Char => "c_char".into(),
            Self::Int(_) | Self::Fint => "c_int".into(),
            Self::Double => "f64".into(),
            Self::Aint => "isize".into(),
            Self::Offset | Self::Count => "i64".into(),
            Self::Status(_) => "<A as Abi>::Status".into(),
            Self::Handle(name) => format!("<A as Abi>::{name}"),
            Self::Tool(_) => "*mut c_void".into(),
            Self::Callback { name, poly, large } => {
                let name = camel(name);
                match (name.as_str(), poly, large) {
                    ("GrequestFreeFunction" | "GrequestCancelFunction", ..) => {
                        format!("Option<callback::{name}>")
                    }
                    (_, true, true) => format!("Option<callback::{name}<A, i64>>"),
                    (_, true, false) => format!("Option<callback::{name}<A, c_int>>"),
                    _ if name.starts_with("TEvent") => format!("Option<callback::{name}>"),
                    _ => format!("Option<callback::{name}<A>>"),
                }
            }
            Self::Varargs => "...".into(),
        }
    }
}

/// A parameter's whole type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// What it points to, or is.
    pub base: Base,
    /// `const` in front of the base.
    pub constant: bool,
    /// Number of `*`.
    pub pointers: usize,
    /// `[]`, `[][3]` or nothing.
    pub array: String,
}

impl Type {
    /// The declaration of `name` in C.
    #[must_use]
    pub fn c(&self, name: &str) -> String {
        if self.base == Base::Varargs {
            return "...".to_owned();
        }
        let constant = if self.constant { "const " } else { "" };
        let stars = "*".repeat(self.pointers);
        format!("{constant}{} {stars}{name}{}", self.base.c(), self.array)
    }

    /// The type in Rust, with `A` for the ABI.
    #[must_use]
    pub fn rust(&self) -> String {
        let (mut levels, mut text) = (self.pointers, self.base.rust());
        if let Base::Callback { .. } = self.base {
            return text;
        }
        match self.array.as_str() {
            "" => {}
            "[]" => levels += 1,
            other => {
                levels += 1;
                text = format!("[{text}; {}]", other.trim_matches(['[', ']']));
            }
        }
        for level in 0..levels {
            let constant = level == 0 && self.constant;
            text = format!("{} {text}", if constant { "*const" } else { "*mut" });
        }
        text
    }
}

/// `MPI_Comm_copy_attr_function` to `CommCopyAttrFunction`.
#[must_use]
pub fn camel(name: &str) -> String {
    let name = name.strip_prefix("MPI_").unwrap_or(name);
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}
