// SPDX-License-Identifier: Apache-2.0
//! Attacks by those who already have a foot in the door, one file for each wall that they run into.
//! Every one succeeded once, or would without the wall.

mod claims;
mod grants;
mod signatures;
