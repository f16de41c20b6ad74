/// Calls a function that is generic over the width of the ELF file.
macro_rules! with_elf {
    ($path:expr, $contents:expr, |$file:ident| $body:expr) => {{
        let (path, bytes): (&std::path::Path, &[u8]) = ($path, $contents);
        match object::FileKind::parse(bytes) {
            Ok(object::FileKind::Elf64) => object::read::elf::ElfFile::<
                object::elf::FileHeader64<object::Endianness>,
            >::parse(bytes)
            .map_err(|error| $crate::elf::section::corrupt(path, "the ELF header", error))
            .and_then(|$file| $body),
            Ok(object::FileKind::Elf32) => object::read::elf::ElfFile::<
                object::elf::FileHeader32<object::Endianness>,
            >::parse(bytes)
            .map_err(|error| $crate::elf::section::corrupt(path, "the ELF header", error))
            .and_then(|$file| $body),
            _ => Err($crate::elf::foreign::describe(path, bytes)),
        }
    }};
}
pub(super) use with_elf;
