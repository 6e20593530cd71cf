//! Committing and naming datatypes (MPI-4.1 sections 5.1.9 and 7.8).

use super::construct::bound;
use crate::arguments::{Call, Outcome};
use crate::text::{give_bytes, shortened};
use cohort_abi::parameters::{InOut, Out, Text, TextOut};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_engine::datatype as engine;
use cohort_object::Datatype;
use core::ffi::c_int;

/// `MPI_Type_commit`. Types are compiled when they are made, so this only takes note.
pub fn commit<A: Abi>(call: &Call<'_, A>, datatype: InOut<'_, A::Datatype>) -> Outcome<()> {
    let datatype = call.inout(datatype, "datatype")?;
    call.objects().datatype(datatype.get().neutral())?.commit();
    Ok(())
}

/// `MPI_Type_set_name`.
pub fn set_name<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype, name: Text<'_>) -> Outcome<()> {
    let name = name.get().ok_or(neutral::ERR_ARG)?.to_bytes();
    let limit = <A as Constants>::MAX_OBJECT_NAME - 1;
    call.objects().datatype(datatype.neutral())?.set_name(shortened(name, limit));
    Ok(())
}

/// `MPI_Type_get_name`; predefined types have the names of the standard.
pub fn get_name<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    name: TextOut<'_>,
    length: Out<'_, c_int>,
) -> Outcome<()> {
    if name.is_null() {
        return Err(call.blame(neutral::ERR_ARG, format_args!("type_name is NULL")));
    }
    let length = call.output(length, "resultlen")?;
    let text = match datatype.neutral() {
        _ if bound::<A>(datatype) == Some(0) => b"MPI_LB".into(),
        _ if bound::<A>(datatype) == Some(1) => b"MPI_UB".into(),
        neutral::handle::DATATYPE_NULL => b"MPI_DATATYPE_NULL".into(),
        handle => call.objects().datatype(handle)?.given_name(),
    };
    length.write(give_bytes(&text, name, <A as Constants>::MAX_OBJECT_NAME)?);
    Ok(())
}

/// `MPI_Type_dup`: the duplicate is committed if the original is, and has the attributes that
/// their copy callbacks give it.
pub fn dup<A: Abi>(call: &Call<'_, A>, oldtype: A::Datatype, newtype: Out<'_, A::Datatype>) -> Outcome<()> {
    let newtype = call.output(newtype, "newtype")?;
    newtype.preset(A::Datatype::from_neutral(call.context(), neutral::handle::DATATYPE_NULL));
    let old = call.objects().datatype(oldtype.neutral())?;
    let mut copy = Datatype::new(engine::dup(&call.datatype(oldtype)?));
    copy.attributes = old.attributes.copied(oldtype.neutral())?;
    if old.is_committed() {
        copy.commit();
    }
    let handle = call.objects().add_datatype(copy)?;
    newtype.write(A::Datatype::from_neutral(call.context(), handle));
    Ok(())
}

/// `MPI_Type_free`: operations under way keep what they need. Predefined types cannot be freed.
pub fn free<A: Abi>(call: &Call<'_, A>, datatype: InOut<'_, A::Datatype>) -> Outcome<()> {
    let datatype = call.inout(datatype, "datatype")?;
    let handle = datatype.get().neutral();
    let object = call.objects().datatype(handle)?;
    let is_parametrised = object.layout.contents().combiner.is_parametrised();
    if object.layout.handle() != 0 || is_parametrised {
        let what = format_args!("a predefined datatype cannot be freed");
        return Err(call.blame(neutral::ERR_TYPE, what));
    }
    object.attributes.delete_all(handle)?;
    drop(call.objects().remove_datatype(handle)?);
    datatype.set(A::Datatype::from_neutral(call.context(), neutral::handle::DATATYPE_NULL));
    Ok(())
}
