//! The methods of `Backend` that most layers leave to the backend below them.

/// Defines methods of `Backend` that pass the call on to the backend in the layer's field `inner`. `origin` defines the
/// methods for the server's address and port. `whole` defines `capabilities`, `close`, `backup` and `snapshot`, and
/// `store` these and the methods for settings.
macro_rules! forward_to_inner {
    (origin) => {
        fn server_address(&self) -> Option<&str> {
            self.inner.server_address()
        }

        fn server_port(&self) -> Option<u16> {
            self.inner.server_port()
        }
    };
    (store) => {
        $crate::backend::layer::forward::forward_to_inner!(whole);

        fn settings<'a>(
            &'a self,
            table: Option<&'a str>,
        ) -> $crate::backend::BoxFuture<'a, $crate::error::Result<Option<String>>> {
            self.inner.settings(table)
        }

        fn set_settings<'a>(
            &'a self,
            table: Option<&'a str>,
            text: &'a str,
        ) -> $crate::backend::BoxFuture<'a, $crate::error::Result<()>> {
            self.inner.set_settings(table, text)
        }
    };
    (whole) => {
        fn capabilities(&self) -> $crate::backend::Capabilities {
            self.inner.capabilities()
        }

        fn close(&self) -> $crate::backend::BoxFuture<'_, $crate::error::Result<()>> {
            self.inner.close()
        }

        fn snapshot(
            &self,
        ) -> $crate::backend::BoxFuture<'_, $crate::error::Result<$crate::backend::Snapshot>> {
            self.inner.snapshot()
        }
    };
}
pub(crate) use forward_to_inner;
