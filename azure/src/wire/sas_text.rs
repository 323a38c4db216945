//! The texts that signatures sign, for those who make signatures and for a server that checks them.

/// The first version of account signatures that name an encryption scope.
const FIRST_WITH_SCOPE: &str = "2020-12-06";

/// Returns the text that a signature for a table signs. `member` returns the decoded value of a parameter of the
/// signature's query, or an empty text. `key_lines` says which key or stored policy is used.
pub fn table_text_to_sign<'a>(
    account: &str,
    key_lines: &[&str],
    member: impl Fn(&str) -> &'a str,
) -> String {
    // The service signs the table's name in lower case, whatever its case in `tn`.
    let resource = format!("/table/{account}/{}", member("tn").to_ascii_lowercase());
    let mut lines = vec![member("sp"), member("st"), member("se"), &*resource];
    lines.extend(key_lines);
    lines.extend(["sip", "spr", "sv", "spk", "srk", "epk", "erk"].map(member));
    lines.join("\n")
}

/// Returns the text that a signature for an account signs. `member` returns the decoded value of a parameter of the
/// signature's query, or an empty text.
pub fn account_text_to_sign<'a>(account: &str, member: impl Fn(&str) -> &'a str) -> String {
    let mut lines = vec![account];
    lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(&member));
    if member("sv") >= FIRST_WITH_SCOPE {
        lines.push(member("ses"));
    }
    // Unlike the text of a table's signature, this one ends with a line break.
    lines.push("");
    lines.join("\n")
}

/// Returns the value of a member of a query, or an empty text.
pub(crate) fn member_of<'a>(members: &[(&str, &'a str)], name: &str) -> &'a str {
    members.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}
