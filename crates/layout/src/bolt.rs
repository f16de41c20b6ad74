//! BOLT's two profile formats.
