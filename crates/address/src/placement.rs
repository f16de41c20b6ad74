use crate::{ImageAddress, RuntimeAddress};

/// A run of a binary's addresses, and where it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins at run time.
    pub runtime: RuntimeAddress,
    /// Where it begins in the binary.
    pub image: ImageAddress,
    /// Bytes.
    pub size: u64,
}

/// Where the parts of one binary ran: one region for a kernel, one per section for a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    regions: Vec<Region>, // by runtime address
}

impl Placement {
    /// Regions in any order. Where two overlap, the one that begins later wins.
    pub fn new(mut regions: Vec<Region>) -> Self {
        regions.sort_by_key(|region| region.runtime);
        Self { regions }
    }

    /// The regions, by runtime address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The address in the binary, if `address` lies in one of the regions.
    pub fn to_image(&self, address: RuntimeAddress) -> Option<ImageAddress> {
        let after = self.regions.partition_point(|region| region.runtime <= address);
        let region = self.regions.get(after.checked_sub(1)?)?;
        let offset = address.0.checked_sub(region.runtime.0)?;
        (offset < region.size).then(|| ImageAddress(region.image.0.wrapping_add(offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(runtime: u64, image: u64, size: u64) -> Region {
        Region { runtime: RuntimeAddress(runtime), image: ImageAddress(image), size }
    }

    #[test]
    fn an_address_moves_with_its_region() {
        let placement = Placement::new(vec![region(0x5000, 0x100, 0x10), region(0x1000, 0, 0x20)]);
        let moved = |address| placement.to_image(RuntimeAddress(address));
        assert_eq!(moved(0x1004), Some(ImageAddress(4)));
        assert_eq!(moved(0x500f), Some(ImageAddress(0x10f)));
        for outside in [0, 0xfff, 0x1020, 0x5010, u64::MAX] {
            assert_eq!(moved(outside), None);
        }
    }
}
