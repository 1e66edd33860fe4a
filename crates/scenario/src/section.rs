//! Sections of scenario files. Each is a table of fields, which generates its reader, its writer and its description.

use crate::field::Field;
use crate::reader::Reader;
use crate::writer::Writer;

/// Keys of one TOML table. [`section!`] implements it.
pub(crate) trait Section: Sized {
    /// Returns the rows of the table.
    fn fields() -> Vec<Field>;

    /// Reads every key and reports all faults. Returns `None` if there is one.
    fn read_rows(reader: &mut Reader<'_>) -> Option<Self>;

    /// Writes every key in the order of the rows.
    fn write_rows(&self, out: &mut Writer);
}

/// Value of one TOML table, with the rules across its fields.
pub(crate) trait Described: Sized {
    /// Table as written in the file.
    type Rows: Section;

    /// Checks the rules across fields and returns the value.
    fn from_rows(rows: Self::Rows, reader: &mut Reader<'_>) -> Option<Self>;

    /// Returns the table that reads as this value.
    fn to_rows(&self) -> Self::Rows;

    /// Reads a whole table.
    fn read(mut reader: Reader<'_>) -> Option<Self> {
        let rows = Self::Rows::read_rows(&mut reader);
        let value = rows.and_then(|rows| Self::from_rows(rows, &mut reader));
        reader.finish();
        value
    }
}

/// Returns a section as an inline table.
pub(crate) fn inline(rows: &impl Section) -> String {
    let mut out = Writer::inline();
    rows.write_rows(&mut out);
    format!("{{ {} }}", out.finish().0)
}

/// Returns the keys with which a section is written.
pub(crate) fn keys_of(rows: &impl Section) -> Vec<String> {
    let mut out = Writer::inline();
    rows.write_rows(&mut out);
    out.finish().1
}

/// Defines a section. A row is
///
/// ```text
/// /// Help text, for the book and for Python.
/// field: Type = "key" [presence] form;
/// ```
///
/// where the presence is one of
///
/// * `required`
/// * `or VALUE`: the default
/// * `unless VALUE`: the default, which is not written
/// * `optional "TEXT"`: the field is an `Option`, and the text says what holds without it
/// * `list`: a list of tables
/// * `selects required`, `selects or VALUE`: words that decide which of the following rows apply
/// * `only ["WORD"] required`, `or VALUE` or `optional "TEXT"`: a row that applies to these words only, an `Option`
/// * `flatten`: the rows of another section, with `""` as key and `()` as form
///
/// `impl Type { … }` in place of a struct implements [`Section`] for a type of another crate.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        #[derive($($derive:ident),+)]
        $vis:vis struct $Name:ident {
            $( $(#[doc = $help:literal])+ $field:ident: $type:ty = $key:literal [$($mode:tt)+] $form:expr; )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derive),+)]
        $vis struct $Name {
            $( $(#[doc = $help])+ pub $field: $type, )+
        }
        $crate::section::section! {
            impl $Name { $( $(#[doc = $help])+ $field: $type = $key [$($mode)+] $form; )+ }
        }
    };
    (
        impl $Name:ty {
            $( $(#[doc = $help:literal])+ $field:ident: $type:ty = $key:literal [$($mode:tt)+] $form:expr; )+
        }
    ) => {
        impl $crate::section::Section for $Name {
            fn fields() -> Vec<$crate::field::Field> {
                let mut fields = Vec::new();
                $( $crate::section::section!(
                    @field fields, concat!($($help),+), $type, $key, &$form, $($mode)+); )+
                fields
            }

            fn read_rows(reader: &mut $crate::reader::Reader<'_>) -> Option<Self> {
                $( let $field: Option<$type> =
                    $crate::section::section!(@read reader, $type, $key, &$form, $($mode)+); )+
                Some(Self { $( $field: $field? ),+ })
            }

            fn write_rows(&self, out: &mut $crate::writer::Writer) {
                $( $crate::section::section!(@write out, self.$field, $key, &$form, $($mode)+); )+
            }
        }
    };

    (@field $fields:ident, $help:expr, $type:ty, $key:literal, $form:expr, flatten) => {
        $fields.extend(<$type as $crate::section::Section>::fields())
    };
    (@field $fields:ident, $help:expr, $type:ty, $key:literal, $form:expr, only [$($word:literal),+] $($mode:tt)+) => {{
        let presence = $crate::section::section!(@presence $form, $($mode)+);
        let (help, about) = ($help.trim().to_owned(), $crate::form::Form::about($form));
        $fields.push($crate::field::Field { key: $key, help, about, presence, only: &[$($word),+] });
    }};
    (@field $fields:ident, $help:expr, $type:ty, $key:literal, $form:expr, $($mode:tt)+) => {{
        let presence = $crate::section::section!(@presence $form, $($mode)+);
        let (help, about) = ($help.trim().to_owned(), $crate::form::Form::about($form));
        $fields.push($crate::field::Field { key: $key, help, about, presence, only: &[] });
    }};

    (@presence $form:expr, selects $($mode:tt)+) => { $crate::section::section!(@presence $form, $($mode)+) };
    (@presence $form:expr, required) => { $crate::field::Presence::Required };
    (@presence $form:expr, or $default:expr) => {
        $crate::field::Presence::Default($crate::form::Form::write($form, &$default))
    };
    (@presence $form:expr, unless $default:expr) => { $crate::section::section!(@presence $form, or $default) };
    (@presence $form:expr, optional $text:literal) => { $crate::field::Presence::Optional($text) };
    (@presence $form:expr, list) => { $crate::field::Presence::Optional("none") };

    (@read $reader:ident, $type:ty, $key:literal, $form:expr, flatten) => {
        <$type as $crate::section::Section>::read_rows($reader)
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, only [$($word:literal),+] $($mode:tt)+) => {
        match $reader.applies($key, &[$($word),+]) {
            Some(true) => $crate::section::section!(@some $reader, $key, $form, $($mode)+),
            Some(false) => Some(None),
            None => None,
        }
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, selects required) => {
        $reader.select($key, $form, None)
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, selects or $default:expr) => {
        $reader.select($key, $form, Some($default))
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, required) => { $reader.required($key, $form) };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, or $default:expr) => {
        $reader.or($key, $form, $default)
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, unless $default:expr) => {
        $reader.or($key, $form, $default)
    };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, list) => { $reader.or($key, $form, Vec::new()) };
    (@read $reader:ident, $type:ty, $key:literal, $form:expr, optional $text:literal) => {
        $reader.optional($key, $form)
    };

    (@some $reader:ident, $key:literal, $form:expr, required) => { $reader.required($key, $form).map(Some) };
    (@some $reader:ident, $key:literal, $form:expr, or $default:expr) => {
        $reader.or($key, $form, $default).map(Some)
    };
    (@some $reader:ident, $key:literal, $form:expr, optional $text:literal) => { $reader.optional($key, $form) };

    (@write $out:ident, $value:expr, $key:literal, $form:expr, flatten) => {
        $crate::section::Section::write_rows(&$value, $out)
    };
    (@write $out:ident, $value:expr, $key:literal, $form:expr, unless $default:expr) => {
        if $value != $default {
            $crate::form::Form::put($form, $out, $key, &$value);
        }
    };
    (@write $out:ident, $value:expr, $key:literal, $form:expr, optional $text:literal) => {
        if let Some(value) = &$value {
            $crate::form::Form::put($form, $out, $key, value);
        }
    };
    (@write $out:ident, $value:expr, $key:literal, $form:expr, only [$($word:literal),+] $($mode:tt)+) => {
        if let Some(value) = &$value {
            $crate::form::Form::put($form, $out, $key, value);
        }
    };
    (@write $out:ident, $value:expr, $key:literal, $form:expr, $($mode:tt)+) => {
        $crate::form::Form::put($form, $out, $key, &$value)
    };
}
pub(crate) use section;
