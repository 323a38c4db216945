//! Draws what a lease and a claim are for: who handles a message, and who gets a unique value.

use super::column::{
    Column,
    Words::{Code, Plain, Soft, Strong, Sure},
};

pub(super) const LEASE: &str = "A lease decides which worker handles a message";

pub(super) const CLAIM: &str = "A claim decides which writer gets a unique value";

pub(super) fn draw_lease(column: &mut Column) {
    column.partition(
        &[Soft("a partition of your table")],
        &[(false, &[Code("~e3_.."), Soft("message: Leased, Attempts")])],
        &[],
    );
    column.arrow(&[Plain(
        "Two workers merge Leased under the ETag that both read. One succeeds, the other gets 412.",
    )]);
    column.step(&[
        Strong("The holder calls the handler."),
        Soft("A handler that needs more time: the lease is renewed halfway."),
    ]);
    column.arrow(&[Plain("delete the message, under the ETag of the lease")]);
    column.step(&[
        Sure("Done."),
        Soft("If the holder stops, its lease ends, and another worker takes the message. So a handler may run twice."),
    ]);
}

pub(super) fn draw_claim(column: &mut Column) {
    column.step(&[Code("staff.insert(&employee)")]);
    column.arrow(&[Plain("1. insert the claim, in the entity's partition")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[(false, &[Code("~e1_.."), Soft("claim: names the value")])],
        &[],
    );
    column.arrow(&[Plain("2. insert the reservation. Whoever comes second gets a conflict here.")]);
    column.partition(
        &[Soft("PartitionKey"), Code("email_jonesj@contoso.com")],
        &[(false, &[Code("account"), Soft("reservation: SrcC names the claim")])],
        &[],
    );
    column.arrow(&[Plain("3. one transaction: the entity, and delete the claim")]);
    column.partition(
        &[Soft("PartitionKey"), Code("Sales")],
        &[(true, &[Code("empid_000223"), Soft("the entity")])],
        &[Sure("The value is taken.")],
    );
    column.late_arrow(&[Plain("4. the reservation becomes the copy: SrcC is removed")]);
    column.step(&[
        Strong("If the writer stops before step 3"),
        Soft("a worker marks the claim dead after 5 minutes. Step 3 can then no longer succeed, and the value is free."),
    ]);
}
