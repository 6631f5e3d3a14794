//! Writes a table's file: blocks of rows, their index, a filter, and properties, in the format that
//! lsm-tree 3.1 reads (see `archive`, `block_header`, `block_rows` and `block_index`).
//!
//! A row is copied once, into the bytes of the file that are not written yet. lsm-tree's own writer
//! collects the rows of a block before it encodes them, counts references to each key and value, and
//! copies each block once more.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lsm_tree::coding::Encode;
use lsm_tree::file::fsync_directory;
use lsm_tree::table::DataBlock;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{CompressionType, InternalValue, ValueType};
use quire_storage::Space;
use twox_hash::XxHash3_128;

use crate::memory::row_tree::alike;
use crate::table::archive::Contents;
use crate::table::block_fields::{end_entries, put_number};
use crate::table::block_header::{BlockHeader, FILTER, HEADER_BYTES, INDEX, PROPERTIES, ROWS};
use crate::table::block_rows::{TOMBSTONE, VALUE};
use crate::table::file::{ROWS_SECTION, VERSION_SECTION};
use crate::table::tuning::{SYNC_BYTES, block_bytes, restart_interval};

/// The bytes after which the file is written to. Larger pieces leave the processor's cache before
/// the system copies them.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces end at multiples of this many bytes, so that the system gets whole pages.
const PAGE_BYTES: usize = 4 << 10;
/// The version of the format, and of the lsm-tree whose format it is.
const VERSION: u8 = 3;
const LSM_TREE: &str = "3.1.10";
/// The number for xxh3 among the kinds of checksums and of hashes.
const XXH3: u8 = 0;

/// A row for a table.
#[derive(Clone, Copy)]
pub(crate) struct NewRow<'r> {
    pub key: &'r [u8],
    pub seqno: u64,
    /// `None` if the key is deleted.
    pub value: Option<&'r [u8]>,
}

impl NewRow<'_> {
    /// Returns the bytes of the key and the value.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.map_or(0, <[u8]>::len)
    }
}

/// How a table is written.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub space: Space,
    /// The level for which it is written.
    pub level: u8,
    pub compression: CompressionType,
    /// The bits for each key in the filter.
    pub filter_bits: f32,
}

/// A table that is being written.
pub(crate) struct TableWriter {
    path: PathBuf,
    number: u64,
    kind: Kind,
    file: File,
    /// The bytes of the file that are not written yet, and the number of those before them.
    unwritten: Vec<u8>,
    written: u64,
    /// The bytes written since the last sync.
    unsynced: usize,
    checksum: XxHash3_128,
    contents: Contents,
    block: OpenBlock,
    compressed: Vec<u8>,
    /// The entries of the index, and the offset of each.
    index: Vec<u8>,
    index_entries: Vec<u32>,
    /// The hashes of the keys.
    hashes: Vec<u64>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    totals: Totals,
}

/// The block of rows that is being written, after the place of its header in `unwritten`.
#[derive(Default)]
struct OpenBlock {
    /// Where its rows begin in `unwritten`.
    from: usize,
    rows: u32,
    /// The bytes of the keys and values.
    bytes: usize,
    /// The offsets of the rows with whole keys.
    wholes: Vec<u32>,
    /// The last whole key, in `unwritten`.
    whole_key: Range<usize>,
    last_seqno: u64,
}

#[derive(Default)]
struct Totals {
    rows: u64,
    tombstones: u64,
    blocks: u64,
    /// The bytes of the blocks of rows before compression.
    plain_bytes: u64,
    /// The lowest and the highest batch of a row.
    seqnos: Option<(u64, u64)>,
}

type Result<T> = lsm_tree::Result<T>;

impl TableWriter {
    /// Creates the file of table `number`.
    pub fn create(path: &Path, number: u64, kind: Kind) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            number,
            kind,
            file: File::create_new(path)?,
            unwritten: Vec::with_capacity(PIECE_BYTES + 2 * block_bytes(kind.space) as usize),
            written: 0,
            unsynced: 0,
            checksum: XxHash3_128::new(),
            contents: Contents::default(),
            block: OpenBlock::default(),
            compressed: Vec::new(),
            index: Vec::new(),
            index_entries: Vec::new(),
            hashes: Vec::new(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            totals: Totals::default(),
        })
    }

    /// Writes a row. Its key must be greater than that of the row before it.
    pub fn write(&mut self, row: NewRow<'_>) -> Result<()> {
        debug_assert!(self.totals.rows == 0 || *self.last_key < *row.key, "keys must rise");
        if self.block.rows == 0 {
            self.unwritten.resize(self.unwritten.len() + HEADER_BYTES, 0);
            self.block.from = self.unwritten.len();
        }
        self.encode(row);
        if self.totals.rows == 0 {
            self.first_key.extend_from_slice(row.key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(row.key);
        self.hashes.push(Builder::get_hash(row.key));
        let (low, high) = self.totals.seqnos.unwrap_or((row.seqno, row.seqno));
        self.totals.seqnos = Some((low.min(row.seqno), high.max(row.seqno)));
        self.totals.rows += 1;
        self.totals.tombstones += u64::from(row.value.is_none());
        if self.block.bytes >= block_bytes(self.kind.space) as usize {
            self.end_block()
        } else {
            Ok(())
        }
    }

    /// Appends a row to the block.
    fn encode(&mut self, row: NewRow<'_>) {
        let (out, block) = (&mut self.unwritten, &mut self.block);
        let offset = (out.len() - block.from) as u32;
        out.push(if row.value.is_some() { VALUE } else { TOMBSTONE });
        put_number(out, row.seqno);
        if block.rows.is_multiple_of(u32::from(restart_interval(self.kind.space))) {
            block.wholes.push(offset);
            put_number(out, row.key.len() as u64);
            block.whole_key = out.len()..out.len() + row.key.len();
            out.extend_from_slice(row.key);
        } else {
            let whole = out.get(block.whole_key.clone()).unwrap_or_default();
            let shared = alike(whole, row.key);
            let rest = row.key.get(shared..).unwrap_or_default();
            put_number(out, shared as u64);
            put_number(out, rest.len() as u64);
            out.extend_from_slice(rest);
        }
        if let Some(value) = row.value {
            put_number(out, value.len() as u64);
            out.extend_from_slice(value);
        }
        block.rows += 1;
        block.bytes += row.bytes();
        block.last_seqno = row.seqno;
    }

    /// Ends the block of rows, and writes to the file if enough bytes wait for it.
    fn end_block(&mut self) -> Result<()> {
        let block = &mut self.block;
        if block.rows == 0 {
            return Ok(());
        }
        let interval = restart_interval(self.kind.space);
        end_entries(&mut self.unwritten, block.from, interval, &block.wholes, block.rows);
        let plain_length = self.unwritten.len() - block.from;
        if self.kind.compression == CompressionType::Lz4 {
            self.compress()?;
        }
        let block = &mut self.block;
        let stored = self.unwritten.get(block.from..).unwrap_or_default();
        let size = (HEADER_BYTES + stored.len()) as u64;
        let header = BlockHeader::of(ROWS, stored, plain_length as u32).encode();
        let at = block.from - HEADER_BYTES;
        if let Some(place) = self.unwritten.get_mut(at..block.from) {
            place.copy_from_slice(&header);
        }
        self.index_entries.push(self.index.len() as u32);
        self.index.push(0);
        put_number(&mut self.index, self.written + at as u64);
        put_number(&mut self.index, size);
        put_number(&mut self.index, block.last_seqno);
        put_number(&mut self.index, self.last_key.len() as u64);
        self.index.extend_from_slice(&self.last_key);
        self.totals.blocks += 1;
        self.totals.plain_bytes += plain_length as u64;
        block.rows = 0;
        block.bytes = 0;
        block.wholes.clear();
        if self.unwritten.len() >= PIECE_BYTES {
            self.write_out(self.unwritten.len() / PAGE_BYTES * PAGE_BYTES)?;
        }
        Ok(())
    }

    /// Replaces the bytes of the block by their compressed form.
    fn compress(&mut self) -> Result<()> {
        let plain = self.unwritten.get(self.block.from..).unwrap_or_default();
        let room = lz4_flex::block::get_maximum_output_size(plain.len());
        if self.compressed.len() < room {
            self.compressed.resize(room, 0);
        }
        let length = lz4_flex::block::compress_into(plain, &mut self.compressed);
        let length = length.map_err(std::io::Error::other)?;
        self.unwritten.truncate(self.block.from);
        self.unwritten.extend_from_slice(self.compressed.get(..length).unwrap_or_default());
        Ok(())
    }

    /// Writes the first `length` bytes that wait to the file. Syncs the file if enough is written.
    fn write_out(&mut self, length: usize) -> Result<()> {
        let piece = self.unwritten.get(..length).unwrap_or_default();
        self.checksum.write(piece);
        self.file.write_all(piece)?;
        self.written += length as u64;
        self.unsynced += length;
        if self.unsynced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        self.unwritten.drain(..length);
        // After a huge value.
        self.unwritten.shrink_to(2 * PIECE_BYTES);
        self.compressed.truncate(PIECE_BYTES);
        self.compressed.shrink_to(PIECE_BYTES);
        Ok(())
    }

    /// Ends a section of the archive.
    fn end_section(&mut self, name: &[u8]) {
        let end = self.written + self.unwritten.len() as u64;
        self.contents.end_section(name, end);
    }

    /// Appends a section of one block, which is not compressed.
    fn section(&mut self, name: &[u8], kind: u8, block: &[u8]) {
        let header = BlockHeader::of(kind, block, block.len() as u32);
        self.unwritten.extend_from_slice(&header.encode());
        self.unwritten.extend_from_slice(block);
        self.end_section(name);
    }

    /// Ends the table, which has a row, and syncs it and its place in the directory. Returns the
    /// checksum of the file.
    pub fn finish(mut self) -> Result<u128> {
        self.end_block()?;
        let rows_end = self.written + self.unwritten.len() as u64;
        self.end_section(ROWS_SECTION);
        let mut index = std::mem::take(&mut self.index);
        end_entries(&mut index, 0, 1, &self.index_entries, self.index_entries.len() as u32);
        self.section(b"tli", INDEX, &index);
        let mut filter = Builder::with_bpk(self.hashes.len(), self.kind.filter_bits);
        self.hashes.iter().for_each(|hash| filter.set_with_hash(*hash));
        self.section(b"filter", FILTER, &filter.build());
        self.unwritten.push(VERSION);
        self.end_section(VERSION_SECTION);
        let properties = DataBlock::encode_into_vec(&self.properties(rows_end), 1, 0.0)?;
        self.section(b"meta", PROPERTIES, &properties);
        self.unwritten.extend_from_slice(&self.contents.encode());
        self.write_out(self.unwritten.len())?;
        self.file.sync_all()?;
        if let Some(directory) = self.path.parent() {
            fsync_directory(directory)?;
        }
        Ok(self.checksum.finish_128())
    }

    /// Returns the properties in the order of their names.
    fn properties(&self, rows_end: u64) -> Vec<InternalValue> {
        let totals = &self.totals;
        let number = |number: u64| number.to_le_bytes().to_vec();
        let created = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (low, high) = totals.seqnos.unwrap_or_default();
        let properties = [
            ("block_count#data", number(totals.blocks)),
            ("block_count#filter", number(1)),
            ("block_count#index", number(1)),
            ("checksum_type", vec![XXH3]),
            ("compression#data", self.kind.compression.encode_into_vec()),
            ("compression#index", CompressionType::None.encode_into_vec()),
            ("crate_version", LSM_TREE.into()),
            ("created_at", created.as_nanos().to_le_bytes().to_vec()),
            ("data_block_hash_ratio", 0_f32.to_le_bytes().to_vec()),
            ("file_size", number(rows_end)),
            ("filter_hash_type", vec![XXH3]),
            ("index_keys_have_seqno", vec![1]),
            ("initial_level", vec![self.kind.level]),
            ("item_count", number(totals.rows)),
            ("key#max", self.last_key.clone()),
            ("key#min", self.first_key.clone()),
            ("key_count", number(totals.rows)),
            ("prefix_truncation#data", vec![1]),
            ("prefix_truncation#index", vec![1]),
            ("restart_interval#data", vec![restart_interval(self.kind.space)]),
            ("restart_interval#index", vec![1]),
            ("seqno#max", number(high)),
            ("seqno#min", number(low)),
            ("table_id", number(self.number)),
            ("table_version", vec![VERSION]),
            ("tombstone_count", number(totals.tombstones)),
            ("user_data_size", number(totals.plain_bytes)),
            ("weak_tombstone_count", number(0)),
            ("weak_tombstone_reclaimable", number(0)),
        ];
        let row = |(name, value): (&str, Vec<u8>)| {
            InternalValue::from_components(name.as_bytes(), value, 0, ValueType::Value)
        };
        properties.map(row).into()
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::Checksum;
    use lsm_tree::config::BloomConstructionPolicy;
    use lsm_tree::table::Block;
    use lsm_tree::table::block::decoder::ParsedItem;
    use quire_storage::rng::Rng;

    use super::*;
    use crate::table::archive;
    use crate::table::file::{Readable, verify};
    use crate::table::manifest::TableEntry;

    /// Rows with long common beginnings; some keys are short or long, and some values are empty or
    /// larger than a piece of the file.
    fn rows(rng: &mut Rng, count: u64) -> Vec<InternalValue> {
        let mut rows = Vec::new();
        for number in 0..count {
            let mut key = (number * 1000 + rng.below(1000)).to_be_bytes().to_vec();
            key.resize(8 + rng.below(if number % 50 == 7 { 3000 } else { 20 }) as usize, b'k');
            let size = match rng.below(300) {
                0 => rng.below(2 * PIECE_BYTES as u64),
                1..20 => 0,
                _ => rng.below(1500),
            };
            let value: Vec<u8> = (0..size).map(|_| rng.below(9) as u8).collect();
            let kind = if rng.below(8) == 0 { ValueType::Tombstone } else { ValueType::Value };
            let value = if kind == ValueType::Value { value } else { Vec::new() };
            rows.push(InternalValue::from_components(key, value, rng.below(1 << 40), kind));
        }
        rows
    }

    fn parts(row: &InternalValue) -> (Vec<u8>, u64, ValueType, Vec<u8>) {
        let (key, value) = (row.key.user_key.to_vec(), row.value.to_vec());
        (key, row.key.seqno, row.key.value_type, value)
    }

    /// Returns the properties in a section, except the time.
    fn properties(mut section: &[u8]) -> Vec<(Vec<u8>, u64, ValueType, Vec<u8>)> {
        let block = Block::from_reader(&mut section, CompressionType::None).unwrap();
        let block = DataBlock::new(block);
        let rows = block.iter().map(|item| parts(&item.materialize(block.as_slice())));
        rows.filter(|(name, ..)| name != b"created_at").collect()
    }

    #[test]
    fn the_file_is_the_one_that_lsm_tree_writes() {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(3);
        let mut number = 0;
        for (space, compression, filter_bits) in [
            (Space::Doc, CompressionType::None, 10.0),
            (Space::Doc, CompressionType::Lz4, 10.0),
            (Space::Idx, CompressionType::None, 16.0),
            (Space::Idx, CompressionType::Lz4, 14.0),
        ] {
            for count in [1, 2, 17, 3000] {
                let rows = rows(&mut rng, count);
                number += 1;
                let theirs = dir.path().join("theirs");
                let mut writer = lsm_tree::table::Writer::new(theirs.clone(), number, 5)
                    .unwrap()
                    .use_bloom_policy(BloomConstructionPolicy::BitsPerKey(filter_bits))
                    .use_data_block_size(block_bytes(space))
                    .use_data_block_compression(compression)
                    .use_data_block_restart_interval(restart_interval(space));
                let path = dir.path().join(number.to_string());
                let kind = Kind { space, level: 5, compression, filter_bits };
                let mut own = TableWriter::create(&path, number, kind).unwrap();
                for row in &rows {
                    writer.write(row.clone()).unwrap();
                    let value = (!row.is_tombstone()).then_some(&row.value[..]);
                    let (key, seqno) = (&row.key.user_key[..], row.key.seqno);
                    own.write(NewRow { key, seqno, value }).unwrap();
                }
                writer.finish().unwrap();
                let checksum = own.finish().unwrap();

                let read = |path: &Path| std::fs::read(path).unwrap();
                let (own, theirs) = (read(&path), read(&theirs));
                let own = archive::parse(&own).unwrap();
                let theirs = archive::parse(&theirs).unwrap();
                assert_eq!(own.len(), theirs.len());
                for ((name, own), (their_name, theirs)) in own.iter().zip(&theirs) {
                    assert_eq!(name, their_name);
                    match *name == b"meta" {
                        true => assert_eq!(properties(own), properties(theirs)),
                        false => assert!(own == theirs, "{space:?} {count} {name:?}"),
                    }
                }
                let entry = TableEntry { id: number, checksum, seqno: 0 };
                assert_eq!(verify(&path, &entry).map_err(|damage| damage.to_string()), Ok(()));
                let mut readable = Readable::find(&path, 0);
                let read = readable.by_ref().map(|row| parts(&row));
                assert!(read.eq(rows.iter().map(parts)) && !readable.has_lost);
                is_opened_by_lsm_tree(&path, checksum, &rows);
                std::fs::remove_file(dir.path().join("theirs")).unwrap();
            }
        }
    }

    fn is_opened_by_lsm_tree(path: &Path, checksum: u128, rows: &[InternalValue]) {
        let cache = std::sync::Arc::new(lsm_tree::Cache::with_capacity_bytes(1 << 20));
        let checksum = Checksum::from_raw(checksum);
        let table = lsm_tree::Table::recover(path.into(), checksum, 0, 0, cache, None, true, true);
        let table = table.unwrap();
        let properties = &table.metadata;
        assert_eq!(properties.item_count, rows.len() as u64);
        let tombstones = rows.iter().filter(|row| row.is_tombstone()).count() as u64;
        assert_eq!(properties.tombstone_count, tombstones);
        let (first, last) = (rows.first().unwrap(), rows.last().unwrap());
        assert_eq!(properties.key_range.min(), &first.key.user_key);
        assert_eq!(properties.key_range.max(), &last.key.user_key);
        assert_eq!(table.get_highest_seqno(), rows.iter().map(|row| row.key.seqno).max().unwrap());
        for row in rows {
            let key = &row.key.user_key;
            let found = table.get(key, lsm_tree::SeqNo::MAX, Builder::get_hash(key)).unwrap();
            assert_eq!(found.as_ref().map(parts), Some(parts(row)));
        }
    }
}
