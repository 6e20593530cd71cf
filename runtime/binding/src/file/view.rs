//! Views, and what types take in files (MPI-5.0 sections 14.3 and 14.5.1).

use crate::arguments::{Call, Outcome};
use crate::info;
use crate::text::give_text;
use cohort_abi::parameters::{Out, Text, TextOut};
use cohort_abi::{Abi, Constants, Count, Handle, Integer, neutral};
use cohort_engine::datatype::TypeRef;
use cohort_object::file::Wanted;

/// `MPI_File_set_view`.
pub fn set_view<A: Abi>(
    call: &Call<'_, A>,
    file: A::File,
    displacement: i64,
    etype: A::Datatype,
    filetype: A::Datatype,
    datarep: Text<'_>,
    hints: A::Info,
) -> Outcome<()> {
    let file = call.on_file(file)?;
    let wanted = || {
        let datarep = call.text(datarep, "datarep")?.to_bytes();
        Ok(Wanted {
            displacement: (displacement != <A as Constants>::DISPLACEMENT_CURRENT).then_some(displacement),
            etype: call.committed(etype)?,
            filetype: call.committed(filetype)?,
            datarep,
            own: call.objects().representations.find(datarep),
        })
    };
    file.set_view(wanted(), info::given(call, hints))
}

/// A handle of a type that a view has; the program frees it unless it is predefined.
fn handle<A: Abi>(call: &Call<'_, A>, datatype: &TypeRef) -> Outcome<A::Datatype> {
    if datatype.handle() != 0 {
        return Ok(A::Datatype::from_neutral(call.context(), datatype.handle()));
    }
    let handle = call.add_datatype(datatype.clone())?;
    call.objects().datatype(handle.neutral())?.commit();
    Ok(handle)
}

/// `MPI_File_get_view`.
pub fn get_view<A: Abi>(
    call: &Call<'_, A>,
    file: A::File,
    displacement: Out<'_, i64>,
    etype: Out<'_, A::Datatype>,
    filetype: Out<'_, A::Datatype>,
    datarep: TextOut<'_>,
) -> Outcome<()> {
    let file = call.on_file(file)?;
    let displacement = call.output(displacement, "disp")?;
    let etype = call.output(etype, "etype")?;
    let filetype = call.output(filetype, "filetype")?;
    let seen = file.seen();
    give_text(seen.datarep_name(), datarep, <A as Constants>::MAX_DATAREP_STRING)?;
    displacement.write(seen.view.displacement().cast_signed());
    etype.write(handle(call, &seen.types[0])?);
    filetype.write(handle(call, &seen.types[1])?);
    Ok(())
}

/// `MPI_File_get_type_extent`.
pub fn get_type_extent<A: Abi, C: Count>(
    call: &Call<'_, A>,
    file: A::File,
    datatype: A::Datatype,
    extent: Out<'_, C::Address>,
) -> Outcome<()> {
    let file = call.on_file(file)?;
    let extent = call.output(extent, "extent")?;
    let datatype = call.datatype(datatype)?;
    let value = <C::Address as Integer>::from_i64(file.type_extent(&datatype)?).ok_or(neutral::ERR_VALUE_TOO_LARGE)?;
    extent.write(value);
    Ok(())
}
