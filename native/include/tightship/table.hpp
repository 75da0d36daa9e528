/// Tables of text: CSV as in RFC 4180, columns of integers and of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tightship::table {

/// Words one after another in UTF-8; word i is the bytes [stop[i - 1], stop[i]).
struct Words {
    std::string text;
    std::vector<std::int64_t> stop;
};

using Integers = std::vector<std::int64_t>;

/// What a column holds: integers in [0, 2**63), the same or nothing (read as -1), words, or
/// anything, which is not kept.
enum class Kind : int { integer = 0, optional_integer = 1, words = 2, ignored = 3 };

enum class Fault : int { none, field_count, not_integer, out_of_range, quote, too_long };

/// Why a table is refused, and where; `text` is the field, or the number of fields.
struct Refusal {
    Fault fault = Fault::none;
    std::int64_t line = 0;
    std::size_t column = 0;
    std::string text;
};

struct Table {
    std::vector<std::variant<Integers, Words>> columns;
    Integers line; // of each row, from 1; the last line of a row that spans several
    Refusal refusal;
};

/// The fields of the first line that is not empty, and where the table goes on.
struct Header {
    std::vector<std::string> fields;
    std::size_t stop = 0;
    std::int64_t line = 0;
    Refusal refusal;
};

Header read_header(std::string_view content);

/// The rows after a header. Lines end in LF, CRLF or CR; empty lines are skipped. Reading ends at
/// the first fault.
Table read_rows(std::string_view content, const Header &header, std::span<const Kind> kinds);

/// The first word that an earlier one equals; the number of words if all differ.
std::size_t first_repeat(std::string_view text, std::span<const std::int64_t> stop);

/// A column to write: integers, or words (`text` not null).
struct Written {
    std::span<const std::int64_t> values; // the integers, or where the words stop
    const char *text = nullptr;
};

/// The rows as CSV, lines ending in LF, a word in quotes where it needs them.
/// REQUIRES: columns of one length.
std::string write_rows(std::span<const Written> columns);

} // namespace tightship::table
