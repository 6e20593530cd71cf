//! What the kernel's error numbers say.

use core::fmt;
use rustix::io::Errno;

/// An error number in the system's words, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words(pub Errno);

macro_rules! words {
    ($($name:ident $text:literal;)*) => {
        impl fmt::Display for Words {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $(Errno::$name => f.write_str($text),)*
                    other => write!(f, "error {} of the system", other.raw_os_error()),
                }
            }
        }
    };
}

words! {
    PERM "Operation not permitted";
    NOENT "No such file or directory";
    INTR "Interrupted system call";
    IO "Input/output error";
    NXIO "No such device or address";
    BADF "Bad file descriptor";
    AGAIN "Resource temporarily unavailable";
    NOMEM "Cannot allocate memory";
    ACCESS "Permission denied";
    FAULT "Bad address";
    BUSY "Device or resource busy";
    EXIST "File exists";
    NODEV "No such device";
    NOTDIR "Not a directory";
    ISDIR "Is a directory";
    INVAL "Invalid argument";
    NFILE "Too many open files in system";
    MFILE "Too many open files";
    TXTBSY "Text file busy";
    FBIG "File too large";
    NOSPC "No space left on device";
    SPIPE "Illegal seek";
    ROFS "Read-only file system";
    NAMETOOLONG "File name too long";
    NOSYS "Function not implemented";
    LOOP "Too many levels of symbolic links";
    OVERFLOW "Value too large for defined data type";
    OPNOTSUPP "Operation not supported";
    TIMEDOUT "Connection timed out";
    STALE "Stale file handle";
    DQUOT "Disk quota exceeded";
    NOLCK "No locks available";
    REMOTEIO "Remote I/O error";
}
