//! Shows one part of a volume: `dump VOLUME superblock|group N|inode N|node BLOCK|journal`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    holdfast_testkit::dump::command::main()
}
