//! Tests of the whole logic through the contract, as a host would use it.

mod bench;
mod calls;
mod catalogue;
mod histories;
mod tables;
