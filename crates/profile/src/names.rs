use std::sync::Arc;

use crate::{Format, LineLocation, Profile, WriteError};

/// Checks what every compiler's reader checks again: that `format` can hold the names (`is_bad`
/// says which it cannot), and that line offsets are in range. Gives the names, in LLVM's order.
pub(crate) fn checked_names(
    profile: &Profile,
    format: Format,
    is_bad: fn(&str) -> bool,
) -> Result<Vec<&Arc<str>>, WriteError> {
    let names = profile.names();
    if let Some(name) = names.iter().copied().chain(&profile.symbols).find(|name| is_bad(name)) {
        return Err(WriteError::Name { name: name.to_string(), format });
    }
    profile.functions.iter().try_for_each(|(name, function)| check_offsets(name, function))?;
    Ok(names)
}

fn check_offsets(name: &str, function: &crate::FunctionProfile) -> Result<(), WriteError> {
    let mut locations = function.body.keys().chain(function.inlined.keys());
    if let Some(location) = locations.find(|location| location.offset > LineLocation::MAX_OFFSET) {
        return Err(WriteError::Offset { function: name.to_owned(), offset: location.offset });
    }
    function.inlined.values().flatten().try_for_each(|(name, callee)| check_offsets(name, callee))
}

/// Whether `name` cannot be in a form where a zero ends names.
pub(crate) fn has_nul(name: &str) -> bool {
    name.contains('\0')
}
