//! Tests of the whole logic through the contract, as a host would use it.

mod archive;
mod audit;
mod bench;
mod calls;
mod catalogue;
mod documents;
mod goals;
mod histories;
mod junk;
mod recovery;
mod tables;
mod timings;
