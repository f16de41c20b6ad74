use std::io::{self, Seek, SeekFrom, Write};

use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, get_error_name};

use super::bytes::Bytes;
use super::header::{ATTR_SIZE, attr, cpumode, features, ids, section};
use super::recorded::{Compression, PROCESS, PerfHeader, RecordedMapping, RecordedSample};
use crate::input::perf_data::cursor::ByteOrder;
use crate::input::perf_data::format::{
    EVENT_UPDATE_NAME, FILE_HEADER, MAGIC, PIPE_HEADER, RECORD_HEADER, branch, entry, feature,
    misc, record,
};
use crate::{BranchEntry, BranchKind, Space, Speculation};

/// Bytes of records that are compressed together.
const COMPRESSED_TOGETHER: usize = 256 << 10;

/// Writes a perf.data, record by record.
pub struct Writer<W> {
    out: W,
    facts: PerfHeader,
    compression: Compression,
    order: ByteOrder,
    /// Bytes of records.
    written: u64,
    data_offset: u64,
    compressor: Option<CCtx<'static>>,
    plain: Vec<u8>,
    /// Writes what only files have at the end.
    close: fn(&mut Self) -> io::Result<()>,
}

impl<W: Write + Seek> Writer<W> {
    /// A file, as `perf record -o FILE` writes it.
    pub fn file(out: W, facts: PerfHeader, compression: Compression) -> io::Result<Self> {
        Self::file_in(out, facts, compression, ByteOrder::Little)
    }

    pub(crate) fn file_in(
        mut out: W,
        facts: PerfHeader,
        compression: Compression,
        order: ByteOrder,
    ) -> io::Result<Self> {
        let count = facts.events.len() as u64;
        let attrs_offset = FILE_HEADER + 8 * count;
        let data_offset = attrs_offset + count * (u64::from(ATTR_SIZE) + 16);
        let mut header = Bytes::new(order);
        header.zeros(FILE_HEADER as usize);
        ids(&mut header, &facts);
        for (index, event) in (0..).zip(&facts.events) {
            attr(&mut header, event);
            section(&mut header, FILE_HEADER + 8 * index, 8);
        }
        out.write_all(&header.bytes)?;
        let mut writer = Self::begin(out, facts, compression, order)?;
        writer.data_offset = data_offset;
        writer.close = Self::close_file;
        Ok(writer)
    }

    /// The features, and then the header, which says how much there is.
    fn close_file(&mut self) -> io::Result<()> {
        let features = features(&self.facts, self.compression, self.order);
        let mut at = self.data_offset + self.written + 16 * features.len() as u64;
        let mut table = Bytes::new(self.order);
        for (_, content) in &features {
            section(&mut table, at, content.len() as u64);
            at += content.len() as u64;
        }
        self.out.write_all(&table.bytes)?;
        for (_, content) in &features {
            self.out.write_all(content)?;
        }
        let count = self.facts.events.len() as u64;
        let mut header = Bytes::new(self.order);
        header.u64(MAGIC);
        header.u64(FILE_HEADER);
        header.u64(u64::from(ATTR_SIZE) + 16);
        section(&mut header, FILE_HEADER + 8 * count, count * (u64::from(ATTR_SIZE) + 16));
        section(&mut header, self.data_offset, self.written);
        section(&mut header, 0, 0);
        for word in 0..4 {
            let bits = features.iter().map(|&(bit, _)| bit).filter(|bit| bit / 64 == word);
            header.u64(bits.fold(0, |set, bit| set | 1 << (bit % 64)));
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header.bytes)
    }
}

impl<W: Write> Writer<W> {
    /// A pipe, as `perf record -o -` writes it.
    pub fn pipe(mut out: W, facts: PerfHeader, compression: Compression) -> io::Result<Self> {
        let order = ByteOrder::Little;
        let mut header = Bytes::new(order);
        header.u64(MAGIC);
        header.u64(PIPE_HEADER);
        out.write_all(&header.bytes)?;
        let mut writer = Self::begin(out, facts, compression, order)?;
        for event in writer.facts.events.clone() {
            let mut body = Bytes::new(order);
            attr(&mut body, &event);
            body.u64(event.id);
            writer.put(record::HEADER_ATTR, 0, &body.bytes)?;
            let mut name = Bytes::new(order);
            name.u64(EVENT_UPDATE_NAME);
            name.u64(event.id);
            name.padded_string(&event.name, 8);
            writer.put(record::EVENT_UPDATE, 0, &name.bytes)?;
        }
        for (bit, content) in features(&writer.facts, compression, order) {
            // A pipe has a record for each build-id instead.
            if bit == feature::BUILD_ID {
                writer.put_raw(&content)?;
                continue;
            }
            let mut body = Bytes::new(order);
            body.u64(bit);
            body.bytes.extend(content);
            writer.put(record::HEADER_FEATURE, 0, &body.bytes)?;
        }
        Ok(writer)
    }

    fn begin(
        out: W,
        facts: PerfHeader,
        compression: Compression,
        order: ByteOrder,
    ) -> io::Result<Self> {
        let compressor = match compression {
            Compression::None => None,
            Compression::First | Compression::Second => {
                let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
                context.set_parameter(CParameter::CompressionLevel(1)).map_err(zstd_error)?;
                Some(context)
            }
        };
        Ok(Self {
            out,
            facts,
            compression,
            order,
            written: 0,
            data_offset: 0,
            compressor,
            plain: Vec::new(),
            close: |_| Ok(()),
        })
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if its event does not exist or its stack is too deep for
    /// a record; else what the output says.
    pub fn sample(&mut self, sample: &RecordedSample<'_>) -> io::Result<()> {
        let event = self.facts.events.get(sample.event).ok_or(io::ErrorKind::InvalidInput)?;
        let mut body = Bytes::new(self.order);
        body.bytes.reserve(96 + 24 * sample.branches.len());
        body.u64(event.id);
        body.u64(sample.address.0);
        body.u32(sample.process.0);
        body.u32(sample.process.1);
        body.u64(sample.time);
        body.u32(sample.cpu);
        body.u32(0);
        body.u64(event.period);
        if let Some(filter) = event.branches {
            body.u64(sample.branches.len() as u64);
            if filter & branch::HW_INDEX != 0 {
                body.u64(0);
            }
            for branch in sample.branches {
                body.u64(branch.from.0);
                body.u64(branch.to.0);
                body.u64(flags(branch, self.order));
            }
            if filter & branch::COUNTERS != 0 {
                body.zeros(8 * sample.branches.len());
            }
        }
        self.record(record::SAMPLE, cpumode(sample.space), &body.bytes)
    }

    /// Writes where a binary was mapped; a program in process 1.
    pub fn mapping(&mut self, mapping: &RecordedMapping<'_>) -> io::Result<()> {
        let mut body = Bytes::new(self.order);
        let (process, thread) = match mapping.space {
            Space::Kernel => (u32::MAX, 0),
            Space::GuestKernel => (0, 0),
            Space::User => (PROCESS, PROCESS),
        };
        body.u32(process);
        body.u32(thread);
        body.u64(mapping.start.0);
        body.u64(mapping.size);
        body.u64(mapping.offset);
        let (mut kind, mut flags) = (record::MMAP, cpumode(mapping.space));
        if let Some(id) = mapping.build_id {
            (kind, flags) = (record::MMAP2, flags | misc::MMAP_BUILD_ID);
            let id: Vec<u8> = id.bytes().iter().copied().take(20).collect();
            body.u8(id.len() as u8);
            body.zeros(3);
            body.bytes.extend(&id);
            body.zeros(20 - id.len());
            body.u32(5); // readable and executable
            body.u32(2); // private
        }
        body.padded_string(mapping.name, 8);
        self.trailer(&mut body, 0);
        self.record(kind, flags, &body.bytes)
    }

    /// Writes that `count` records of event `event` were lost.
    pub fn lost(&mut self, event: usize, count: u64) -> io::Result<()> {
        let id = self.facts.events.get(event).map_or(0, |event| event.id);
        let mut body = Bytes::new(self.order);
        body.u64(id);
        body.u64(count);
        self.trailer(&mut body, id);
        self.record(record::LOST, 0, &body.bytes)
    }

    /// What `sample_id_all` adds to every record of the kernel: thread, time, CPU, identifier.
    fn trailer(&self, body: &mut Bytes, id: u64) {
        body.u64(0);
        body.u64(0);
        body.u64(0);
        body.u64(id);
    }

    /// Writes a record of any kind; `body` is what follows its header.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> io::Result<()> {
        if self.compressor.is_none() {
            return self.put(kind, misc, body);
        }
        let size = RECORD_HEADER + body.len();
        let mut header = Bytes::new(self.order);
        header.u32(kind);
        header.u16(misc);
        header.u16(u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?);
        self.plain.extend(header.bytes);
        self.plain.extend(body);
        if self.plain.len() >= COMPRESSED_TOGETHER { self.compress() } else { Ok(()) }
    }

    fn put(&mut self, kind: u32, misc: u16, body: &[u8]) -> io::Result<()> {
        let size = RECORD_HEADER + body.len();
        let mut header = Bytes::new(self.order);
        header.u32(kind);
        header.u16(misc);
        header.u16(u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?);
        self.put_raw(&header.bytes)?;
        self.put_raw(body)
    }

    /// Writes bytes that no record's size counts: the payload after a record, or whole records.
    pub(crate) fn put_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes what is waiting as records of compressed bytes. All of them are one stream, as
    /// tools/perf/util/zstd.c makes it.
    fn compress(&mut self) -> io::Result<()> {
        let plain = std::mem::take(&mut self.plain);
        let mut source = InBuffer::around(&plain);
        let mut piece = vec![0; 32 << 10];
        loop {
            let Some(context) = &mut self.compressor else { return Ok(()) };
            let mut target = OutBuffer::around(&mut piece[..]);
            let left = context
                .compress_stream2(&mut target, &mut source, ZSTD_EndDirective::ZSTD_e_flush)
                .map_err(zstd_error)?;
            let count = target.pos();
            let data = piece.get(..count).unwrap_or_default().to_vec();
            if count > 0 && self.compression == Compression::First {
                self.put(record::COMPRESSED, 0, &data)?;
            } else if count > 0 {
                let mut body = Bytes::new(self.order);
                body.u64(count as u64);
                body.bytes.extend(data);
                body.zeros(count.next_multiple_of(8) - count);
                self.put(record::COMPRESSED2, 0, &body.bytes)?;
            }
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Writes what is waiting and what belongs at the end, and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.compress()?;
        (self.close)(&mut self)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::other(get_error_name(code))
}

/// The third word of a `perf_branch_entry`.
fn flags(branch: &BranchEntry, order: ByteOrder) -> u64 {
    let kind = match branch.kind {
        BranchKind::Unknown => 0,
        BranchKind::Conditional => entry::TYPE_CONDITIONAL,
        BranchKind::Jump => entry::TYPE_JUMP,
        BranchKind::Call => entry::TYPE_CALL,
        BranchKind::Return => entry::TYPE_RETURN,
        BranchKind::Entry => entry::TYPE_IRQ,
        BranchKind::Exit => entry::TYPE_ERET,
    };
    let speculation = match branch.speculation {
        Speculation::Unknown => 0,
        Speculation::WrongPath => entry::SPEC_WRONG_PATH,
        Speculation::Correct => entry::SPEC_CORRECT_PATH,
    };
    let (mispredicted, predicted) = match branch.mispredicted {
        None => (0, 0),
        Some(mispredicted) => (u64::from(mispredicted), u64::from(!mispredicted)),
    };
    let fields = [
        (mispredicted, entry::MISPREDICTED),
        (predicted, entry::PREDICTED),
        (kind, entry::TYPE),
        (speculation, entry::SPEC),
    ];
    fields.iter().fold(0, |word, &(value, (lowest, width))| {
        word | match order {
            ByteOrder::Little => value << lowest,
            ByteOrder::Big => value << (64 - lowest - width),
        }
    })
}
